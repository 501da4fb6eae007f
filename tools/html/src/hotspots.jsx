// SPDX-License-Identifier: Apache-2.0
// What a person reads first: where most of the time went, in words; in a comparison, what changed most.

import { useMemo } from "preact/hooks";

import { amount, cpuTime, finding, isTime, percent, short, valueIn } from "./format.js";
import { verdictOf } from "./look.js";
import { Name, Note } from "./parts.jsx";
import { KIND_NOTE } from "./profile.js";

const LISTED = 20;
const FIRST = 3; // above the graph
const CALLERS = 3;
const CALLER = 60; // letters of a caller's name
const CODE = 100; // letters of a line's text

const most = (map) => [...map].sort((x, y) => y[1] - x[1]);
const add = (map, key, value) => map.set(key, (map.get(key) ?? 0) + value);

// The functions with most samples of their own: {key of profile.functions, self, line (the hottest, or -1), callers}.
export function hotspots({ profile, passes, values }) {
  const { stackParent, stackFrame, sampleStack, functions, frameLine } = profile;
  const found = new Map();
  for (let i = 0; i < sampleStack.length; i++) {
    if (!sampleStack[i] || !values[i] || !passes(i)) continue;
    let s = sampleStack[i];
    const frame = stackFrame[s];
    const key = functions.ofFrame[frame];
    if (!found.has(key)) found.set(key, { key, self: 0, lines: new Map(), callers: new Map() });
    const spot = found.get(key);
    spot.self += values[i];
    add(spot.lines, frameLine[frame], values[i]);
    while (s && functions.ofFrame[stackFrame[s]] === key) s = stackParent[s]; // a recursion's caller is outside of it
    if (s) add(spot.callers, functions.ofFrame[stackFrame[s]], values[i]);
  }
  return [...found.values()]
    .sort((x, y) => y.self - x.self || x.key - y.key)
    .slice(0, LISTED)
    .map((spot) => ({ ...spot, lines: most(spot.lines), callers: most(spot.callers) }));
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

const useHotspots = (model) => useMemo(() => (model.profile.diff ? [] : hotspots(model)), [model.profile, model.passes, model.values]);
const useChanges = (model) => useMemo(() => (model.profile.diff ? changes(model) : []), [model.profile]);
const share = (model, value) => percent(value / (model.tree.whole.total || 1));
const show = (model, key) => model.set({ view: "graph", by: "function", fn: String(key), q: "" });

function Changed({ row }) {
  return <b class={row.verdict > 0 ? "grew" : "shrank"}>{finding(row)}</b>;
}

const titleOf = (profile) => {
  const { name, unit } = profile.measure;
  if (unit === "bytes") return "Most memory was first touched in";
  return isTime(profile) || name === "samples" ? "Most time is spent in" : `Most ${name} are in`;
};

// The first few, above the graph.
export function Hottest({ model }) {
  const { profile, set } = model;
  const { functions, diff } = profile;
  const spots = useHotspots(model);
  const changed = useChanges(model);
  const list = diff ? changed : spots;
  return (
    <section class="hottest" aria-label="Hotspots" data-testid="hottest">
      <h2>{diff ? (list.length ? "Changed most" : "No change seen by more than runs differ by.") : titleOf(profile)}</h2>
      <ol>
        {list.slice(0, FIRST).map(({ key, self, lines, row }) => (
          <li key={key}>
            <button onClick={() => show(model, key)} title="Show in the graph">
              {diff ? <Changed row={row} /> : <b>{share(model, self)}</b>} <Name keys={functions} k={key} />
              {lines?.[0][0] > 0 && <small>line {lines[0][0]}</small>}
            </button>
          </li>
        ))}
      </ol>
      <button class="plain" onClick={() => set({ view: "hot" })}>
        All hotspots
      </button>
    </section>
  );
}

function Spot({ model, spot }) {
  const { profile, set } = model;
  const { functions } = profile;
  const { key, self, lines, callers } = spot;
  const file = functions.file[key];
  const [line, onLine] = lines[0];
  const code = profile.sources.get(file)?.[line - 1]?.trim();
  const time = cpuTime(profile, self);
  return (
    <li>
      <p>
        <b class="share">{share(model, self)}</b> <Name keys={functions} k={key} />
      </p>
      <p class="words">
        {amount(profile, self)}
        {time && `, ${time} of CPU time`} {functions.state[key] ? "of waiting." : functions.kind[key] === KIND_NOTE ? "without Python frames." : "in this function itself."}
        {line > 0 && ` Its hottest line is ${line}, with ${percent(onLine / self)} of that.`}
      </p>
      {code && <code class="sample">{short(code, CODE)}</code>}
      {callers.length > 0 && (
        <p class="words">
          {functions.state[key] ? "In" : "Called by"}{" "}
          {callers.slice(0, CALLERS).map(([caller, value], i) => (
            <span key={caller}>
              {i > 0 && ", "}
              <button class="plain" onClick={() => show(model, caller)}>
                {short(functions.label(caller), CALLER)}
              </button>{" "}
              ({percent(value / self)})
            </span>
          ))}
          {callers.length > CALLERS && ` and ${callers.length - CALLERS} more`}.
        </p>
      )}
      <div class="actions">
        <button onClick={() => show(model, key)}>Graph</button>
        <button onClick={() => set({ view: "callers", by: "function", fn: String(key) })}>Callers</button>
        {file && <button onClick={() => set({ view: "source", file, line: line > 0 ? String(line) : "" })}>Source</button>}
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
  const { diff } = model.profile;
  const spots = useHotspots(model);
  const changed = useChanges(model);
  if (!diff && !spots.length) return <Note title="Nothing here">No sample passes the filters.</Note>;
  if (diff && !changed.length)
    return <Note title="No change seen by more than runs differ by">The table of functions says how large a change of each would show.</Note>;
  return (
    <div class="hotspots" data-testid="hotspots" tabIndex={0} aria-label="Hotspots">
      <p class="lead">
        {diff
          ? "The functions whose own samples changed by more than runs of one program differ by."
          : "The functions in which most time was spent, without what they call. Shares are of all samples that are shown."}
      </p>
      <ol>
        {spots.map((spot) => (
          <Spot key={spot.key} model={model} spot={spot} />
        ))}
        {changed.map((change) => (
          <Change key={change.key} model={model} change={change} />
        ))}
      </ol>
    </div>
  );
}
