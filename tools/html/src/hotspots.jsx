// SPDX-License-Identifier: Apache-2.0
// What a person reads first: where most of the time went, in words; in a comparison, what changed most.

import { useMemo } from "preact/hooks";

import { childKind, childrenName, childrenSearch } from "./children.js";
import { Compiled } from "./compiled.jsx";
import { amount, counted, countedOf, cpuTime, finding, isSamples, isTime, number, percent, seconds, short, valueIn } from "./format.js";
import { verdictOf } from "./look.js";
import { Name, Note } from "./parts.jsx";
import { INCOMPLETE, KIND_NATIVE, KIND_NOTE, OWN } from "./profile.js";
import { Lengths } from "./lengths.jsx";

const LISTED = 20;
const FIRST = 3; // above the graph
const CALLERS = 3;
const CALLER = 60; // letters of a caller's name
const CODE = 100; // letters of a line's text
// In place of functions: all threads that wait for work, and all suspended tasks that do.
const IDLE = -1;
const IDLE_TASKS = -2;

const most = (map) => [...map].sort((x, y) => y[1] - x[1]);
const add = (map, key, value) => map.set(key, (map.get(key) ?? 0) + value);

// Adds where a sample that waits does, or who called one that runs. Each is a map of function -> value.
function addPlace(spot, profile, stack, value) {
  const { functions, frameLine, stackFrame, stackParent } = profile;
  const own = profile.nearestOwn(stack);
  if (spot.waits) {
    const waiter = profile.waiterOf(stack);
    if (own) add(spot.lines, frameLine[stackFrame[own]], value);
    if (waiter && profile.functionOf(waiter) !== spot.own) add(spot.callers, profile.functionOf(waiter), value);
    return;
  }
  add(spot.lines, frameLine[stackFrame[stack]], value);
  let s = stack;
  while (s && profile.functionOf(s) === spot.key) s = stackParent[s]; // a recursion's caller is outside of it
  if (!s) return;
  add(spot.callers, profile.functionOf(s), value);
  if (own && profile.functionOf(own) !== spot.key && functions.origin[profile.functionOf(own)] === OWN) add(spot.owners, profile.functionOf(own), value);
}

// Where most time was spent. A function that runs: {key of profile.functions, self, lines and callers, with the most
// first, owners: those of callers, near or far, that are the program's own}. What is waited for, and in which function
// of the program's own: {key, own (-1: none), self, lines of own, callers: the functions of libraries that wait, waits:
// true, count, lengths: of single waits, in microseconds; children: their kind, if they are for processes, which keys are
// the waits for}. Waits for work are one, the last: {key: IDLE, idle: true, callers:
// the nearest functions of the program's own, ...}, and those of suspended tasks one before it.
export function hotspots({ profile, state, passes, values, waits, range }) {
  const { sampleStack, functions, eventSample, eventLength } = profile;
  const found = new Map();
  const spotOf = [];
  for (let i = 0; i < sampleStack.length; i++) {
    const stack = sampleStack[i];
    if (!stack || !values[i] || !passes(i)) continue;
    const idle = !state.idle && profile.idle.has(stack);
    const key = idle ? (profile.isSuspended(stack) ? IDLE_TASKS : IDLE) : profile.functionOf(stack);
    const waiting = idle || !!functions.state[key];
    const nearest = waiting ? profile.nearestOwn(stack) : 0;
    const own = nearest && !idle ? profile.functionOf(nearest) : -1;
    const children = idle ? undefined : childKind(functions, key);
    const id = `${children?.one ?? key} ${own}`;
    if (!found.has(id))
      found.set(id, { key, own, idle, children, keys: new Set(), self: 0, waits: waiting, count: 0, lengths: [], lines: new Map(), callers: new Map(), owners: new Map() });
    const spot = (spotOf[i] = found.get(id));
    spot.keys.add(key);
    spot.self += values[i];
    spot.count += waits?.[i] ?? 0;
    if (idle && nearest) add(spot.callers, profile.functionOf(nearest), values[i]);
    if (!idle) addPlace(spot, profile, stack, values[i]);
  }
  eventSample.forEach((sample, e) => {
    if (eventLength[e] && spotOf[sample] && (!range || profile.shareWithin(e, ...range))) spotOf[sample].lengths.push(eventLength[e]);
  });
  const all = [...found.values()].sort((x, y) => y.self - x.self || x.key - y.key || x.own - y.own);
  return [...all.filter((spot) => !spot.idle).slice(0, LISTED), ...all.filter((spot) => spot.key === IDLE_TASKS), ...all.filter((spot) => spot.key === IDLE)]
    .map((spot) => ({ ...spot, lines: most(spot.lines), callers: most(spot.callers), owners: most(spot.owners) }));
}

// The functions that changed by more than runs differ by, the largest change first.
export function changes({ profile }) {
  const { functions, verdicts } = profile;
  return verdicts
    .map((row, key) => ({ key, row }))
    .filter(({ key, row }) => row && verdictOf(profile, functions, key))
    .sort((x, y) => Math.abs(y.row.self_after - y.row.self_before) - Math.abs(x.row.self_after - x.row.self_before))
    .slice(0, LISTED);
}

const useHotspots = (model) => useMemo(() => (model.profile.diff ? [] : hotspots(model)), [model.profile, model.passes, model.values, model.waits, model.state.idle]);
const useChanges = (model) => useMemo(() => (model.profile.diff ? changes(model) : []), [model.profile]);
const share = (model, value) => percent(value / (model.tree.whole.total || 1));
const show = (model, key) => model.set({ view: "graph", by: "function", fn: String(key), q: "" });
const isMany = ({ children, keys }) => children && keys.size > 1;
const showSpot = (model, spot) => (isMany(spot) ? model.set({ view: "graph", fn: "", q: childrenSearch(spot.children) }) : show(model, spot.key));

function SpotName({ functions, spot }) {
  return isMany(spot) ? <b>{childrenName(spot.children, spot.keys.size)}</b> : <Name keys={functions} k={spot.key} />;
}

function Changed({ row }) {
  return <b class={row.verdict > 0 ? "grew" : "shrank"}>{finding(row)}</b>;
}

const titleOf = (profile) => {
  if (profile.measure.unit === "bytes") return "Most memory was first touched in";
  return isTime(profile) || isSamples(profile) ? "Most time is spent in" : `Most ${countedOf(profile)} are in`;
};

// What the list of all is of.
function leadOf(profile) {
  const what = counted(profile);
  if (profile.diff) return "The functions whose own samples changed by more than runs of one program differ by.";
  if (profile.waits)
    return "What most time was spent in: functions, without what they call, and waits, with the nearest function of the program's own. Shares are of all that is shown.";
  if (profile.measure.unit === "bytes") return "The functions in which most memory was first touched, without what they call. Shares are of all memory that is shown.";
  const clock = isSamples(profile) || isTime(profile);
  return `The functions ${clock ? "in which most time was spent" : `with the most ${what}`}, without what they call. Shares are of all ${what} that ${what === "time" ? "is" : "are"} shown.`;
}

// The first few, above the graph.
export function Hottest({ model }) {
  const { profile, set } = model;
  const { functions, diff } = profile;
  const spots = useHotspots(model);
  const changed = useChanges(model);
  const list = diff ? changed : spots.filter((spot) => !spot.idle);
  const idle = spots.find((spot) => spot.key === IDLE);
  return (
    <section class="hottest" aria-label="Hotspots" data-testid="hottest">
      <h2>{diff ? (list.length ? "Changed most" : "No change seen by more than runs differ by.") : titleOf(profile)}</h2>
      <ol>
        {list.slice(0, FIRST).map((spot) => {
          const { key, own, self, lines, owners, row } = spot;
          return <li key={`${key} ${own}`}>
            <button onClick={() => showSpot(model, spot)} title="Show in the graph">
              {diff ? <Changed row={row} /> : <b>{share(model, self)}</b>} <SpotName functions={functions} spot={spot} />
              {own >= 0 && <small>in {short(functions.label(own), CALLER)}</small>}
              {owners?.length > 0 && <small>from {short(functions.label(owners[0][0]), CALLER)}</small>}
              {lines?.[0]?.[0] > 0 && !owners.length && <small>line {lines[0][0]}</small>}
            </button>
          </li>;
        })}
        {idle && (
          <li key="idle">
            <button onClick={() => set({ view: "hot" })} title="Show in the hotspots">
              <b>{share(model, idle.self)}</b> waiting for work
            </button>
          </li>
        )}
      </ol>
      <button class="plain" onClick={() => set({ view: "hot" })}>
        All hotspots
      </button>
    </section>
  );
}

// "WORD function (share), function (share) and 2 more."
function Functions({ model, word, list, all }) {
  const { functions } = model.profile;
  return (
    <p class="words">
      {word}{" "}
      {list.slice(0, CALLERS).map(([key, value], i) => (
        <span key={key}>
          {i > 0 && ", "}
          <button class="plain" onClick={() => show(model, key)}>
            {short(functions.label(key), CALLER)}
          </button>{" "}
          ({percent(value / all)})
        </span>
      ))}
      {list.length > CALLERS && ` and ${list.length - CALLERS} more`}.
    </p>
  );
}

function longestOf(lengths) {
  return lengths.reduce((most, length) => Math.max(most, length), 0);
}

// How much it is, and of what.
function told(model, { key, self, waits, count, lengths }) {
  const { profile } = model;
  const { functions } = profile;
  const time = cpuTime(profile, self);
  const all = `${amount(profile, self)}${time && `, ${time} of CPU time`}`;
  if (!waits && functions.name[key] === INCOMPLETE) return `${all} whose last native functions are not known.`;
  if (!waits) return `${all} ${functions.kind[key] === KIND_NOTE ? "without Python frames." : "in this function itself."}`;
  if (!count) return `${all} of waiting.`;
  const each = count > 1 ? `, ${seconds(self / count / 1e6)} each on average` : "";
  return `${all} of waiting: ${number(count)} wait${count === 1 ? "" : "s"}${each}${count > 1 && lengths.length ? `, the longest ${seconds(longestOf(lengths) / 1e6)}` : ""}.`;
}

function Spot({ model, spot }) {
  const { profile, set } = model;
  const { functions } = profile;
  const { key, own, self, lines, callers, owners, waits, count, lengths } = spot;
  const place = waits ? own : key; // the function whose line it is
  const file = place >= 0 && functions.kind[place] !== KIND_NATIVE ? functions.file[place] : "";
  const [line, onLine] = lines[0] ?? [-1, 0];
  const code = profile.sources.get(file)?.[line - 1]?.trim();
  return (
    <li>
      <p>
        <b class="share">{share(model, self)}</b> <SpotName functions={functions} spot={spot} />
        {own >= 0 && " in "}
        {own >= 0 && <Name keys={functions} k={own} />}
      </p>
      <p class="words">
        {told(model, spot)}
        {line > 0 && ` Its hottest line is ${line}, with ${percent(onLine / self)} of that.`}
      </p>
      {code && <code class="sample">{short(code, CODE)}</code>}
      {callers.length > 0 && <Functions model={model} word={waits ? "Via" : "Called by"} list={callers} all={self} />}
      {owners.length > 0 && owners[0][0] !== callers[0][0] && <Functions model={model} word="From the program's own" list={owners} all={self} />}
      {lengths.length > 1 && <Lengths lengths={lengths} count={model.range ? lengths.length : count} />}
      <div class="actions">
        <button onClick={() => showSpot(model, spot)}>Graph</button>
        {!isMany(spot) && <button onClick={() => set({ view: "callers", by: "function", fn: String(key) })}>Callers</button>}
        {file && <button onClick={() => set({ view: "source", file, line: line > 0 ? String(line) : "" })}>Source</button>}
      </div>
    </li>
  );
}

function Idle({ model, spot }) {
  const { self, callers, count, lengths } = spot;
  return (
    <li data-testid={spot.key === IDLE ? "idle" : "idle tasks"}>
      <p>
        <b class="share">{share(model, self)}</b> <b>{spot.key === IDLE ? "Waiting for work" : "Suspended tasks that wait for work"}</b>
      </p>
      <p class="words">{told(model, spot)} {spot.key === IDLE ? "Pools, servers and event loops" : "Servers"} had nothing to do.</p>
      {callers.length > 0 && <Functions model={model} word="In" list={callers} all={self} />}
      {lengths.length > 1 && <Lengths lengths={lengths} count={model.range ? lengths.length : count} />}
      <div class="actions">
        <button onClick={() => model.set({ idle: "yes" })}>Show each</button>
      </div>
    </li>
  );
}

function Change({ model, change }) {
  const { functions, diff: { unit } } = model.profile;
  const { key, row } = change;
  return (
    <li>
      <p>
        <Changed row={row} /> <Name keys={functions} k={key} />
      </p>
      <p class="words">
        Own samples: {valueIn(unit, row.self_before)} before, {valueIn(unit, row.self_after)} after. With what it calls:{" "}
        {valueIn(unit, row.before)} before, {valueIn(unit, row.after)} after.
      </p>
      <div class="actions">
        <button onClick={() => show(model, key)}>Graph</button>
        <button onClick={() => model.set({ view: "callers", by: "function", fn: String(key) })}>Callers</button>
      </div>
    </li>
  );
}

export function HotspotsView({ model }) {
  const { profile } = model;
  const { diff } = profile;
  const spots = useHotspots(model);
  const changed = useChanges(model);
  if (!diff && !spots.length) return <Note title="Nothing here">Nothing passes the filters.</Note>;
  if (diff && !changed.length)
    return <Note title="No change seen by more than runs differ by">The table of functions says how large a change of each would show.</Note>;
  return (
    <div class="hotspots" data-testid="hotspots" tabIndex={0} aria-label="Hotspots">
      {!diff && <Compiled model={model} />}
      <p class="lead">
        {leadOf(profile)}
        {model.state.idle && profile.idle.size > 0 && " "}
        {model.state.idle && profile.idle.size > 0 && (
          <button class="plain" onClick={() => model.set({ idle: "" })}>
            Waits for work as one
          </button>
        )}
      </p>
      <ol>
        {spots.map((spot) => (spot.idle ? <Idle key={spot.key} model={model} spot={spot} /> : <Spot key={`${spot.key} ${spot.own}`} model={model} spot={spot} />))}
        {changed.map((change) => (
          <Change key={change.key} model={model} change={change} />
        ))}
      </ol>
    </div>
  );
}
