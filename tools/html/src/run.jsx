// SPDX-License-Identifier: Apache-2.0
// What is known of the run: facts, what became of samples, samples by thread.

import { useMemo, useState } from "preact/hooks";

import { amount, bare, capital, counted, countedOf, cpuTime, isSamples, isTime, number, percent, seconds, short, wallShare } from "./format.js";
import { stateHue, stateName } from "./look.js";
import { usePrinting } from "./printing.js";
import { wallTime } from "./range.jsx";

const FIRST_THREADS = 50;

// How facts are written whose values are not words.
const WORDS = {
  pybpf: (v) => `version ${v}`,
  start_ns: (v) => moment(v),
  duration_s: (v) => seconds(Number(v)),
  others_s: (v) => seconds(Number(v)),
  stolen_s: (v) => seconds(Number(v)),
  waited_s: (v) => seconds(Number(v)),
  freq_hz: (v) => `${v} Hz`,
};
const COMPARED = { share: "shares of each side", "ms/s": "CPU time per second", s: "CPU time of a run" };
const GROUPS = {
  asked: "Samples asked for",
  lost: "Lost",
  without: "Without Python frames",
  python: "With Python frames",
  incomplete: "Incomplete",
  processes: "Processes",
  "left out": "Left out",
  thread_ns: "Time of threads",
};

export function moment(start_ns) {
  const date = new Date(Number(start_ns) / 1e6);
  return Number.isNaN(date.getTime()) ? start_ns : date.toLocaleString([], { dateStyle: "medium", timeStyle: "medium" });
}

// How much the profile has, of what.
function inAll(profile) {
  const { total, suspended, measure } = profile;
  const tasks = suspended ? `, ${(suspended / 1e6).toFixed(2)} task-seconds of suspended tasks` : "";
  if (isTime(profile)) return `${((total - suspended) / 1e6).toFixed(2)} thread-seconds${tasks}`;
  if (measure.unit === "bytes") return `${amount(profile, total)} of memory`;
  return counted(profile) === "hits" ? `${number(total)} ${countedOf(profile)}` : amount(profile, total);
}

// The words under the title: what, when, how long, how many, and what was lost.
export function summary(profile) {
  const { processes, facts, account, diff, total } = profile;
  if (diff) {
    return {
      what: `${diff.after} compared with ${diff.before}`,
      words: [[`${amount(profile, diff.before_total)} before, ${amount(profile, diff.after_total)} after`], [COMPARED[diff.unit]]],
    };
  }
  const names = [...new Set(processes.map((p) => p.label))];
  const others = names.length - 1;
  const what = others < 0 ? "no process" : others ? `${names[0]} and ${others} other process${others > 1 ? "es" : ""}` : names[0];
  const words = [];
  const wall = Number(facts.duration_s) || 0;
  const time = cpuTime(profile, total);
  const ofWall = wallShare(profile, total, wall);
  if (facts.start_ns) words.push([moment(facts.start_ns)]);
  if (wall) words.push([seconds(wall) + (facts.freq_hz ? ` at ${facts.freq_hz} Hz` : "")]);
  words.push([inAll(profile)]);
  if (time && total)
    words.push([
      `CPU time ${time}${ofWall && `, ${ofWall} of the wall time`}`,
      `Each of the samples shown stands for ${seconds(profile.measure.period_ns / 1e9)} of CPU time. 100 % of the wall time is one CPU that was busy throughout; threads that run at the same time can take more.`,
    ]);
  const lost = account.filter((a) => a.group === "lost").reduce((sum, a) => sum + a.value, 0);
  return { what, words, lost };
}

// Samples of each thread among those that are shown: [{process, thread (-1: not kept), value, states: Map of state ->
// value}], the largest first; of a profile of waits, in which all threads have much the same, those that ran most.
function byThread({ profile, passes, values }) {
  const found = new Map();
  for (let i = 0; i < values.length; i++) {
    const stack = profile.sampleStack[i];
    if (!stack || !values[i] || !passes(i)) continue;
    const [process, thread] = [profile.sampleProcess[i], profile.sampleThread[i]];
    const id = `${process} ${thread}`;
    if (!found.has(id)) found.set(id, { process, thread, value: 0, states: new Map() });
    const row = found.get(id);
    const state = profile.stateOf(stack);
    row.value += values[i];
    row.states.set(state, (row.states.get(state) ?? 0) + values[i]);
  }
  const ran = ({ states }) => states.get("") ?? 0;
  return [...found.values()].sort((x, y) => (profile.waits && ran(y) - ran(x)) || y.value - x.value);
}

// The states of these threads, running first, then those with the most time.
function statesOfThreads(rows) {
  const sums = new Map();
  for (const { states } of rows) for (const [state, value] of states) sums.set(state, (sums.get(state) ?? 0) + value);
  return [...sums].sort(([one, x], [other, y]) => (other === "") - (one === "") || y - x).map(([state]) => state);
}

function Share({ part, all, title }) {
  return (
    <td class="cell number" style={{ "--share": part / all }} title={title}>
      {part ? percent(part / all) : ""}
    </td>
  );
}

function Threads({ model }) {
  const { profile, passes, values, set } = model;
  const rows = useMemo(() => byThread(model), [profile, passes, values]);
  const [most, setMost] = useState(FIRST_THREADS);
  const all = rows.reduce((sum, { value }) => sum + value, 0) || 1;
  const wall = wallTime(model);
  const timed = cpuTime(profile, 1) !== "";
  const printing = usePrinting();
  const states = profile.waits ? statesOfThreads(rows) : [];
  const title = profile.waits ? "What each thread did" : `${capital(counted(profile))} by thread`;
  return (
    <section>
      <h2>{title}</h2>
      {profile.waits && <p class="place">Time: how long each thread was there. States: their shares of that time.</p>}
      {rows.length ? (
        <div class="scrolled" tabIndex={0} role="group" aria-label={title}>
          <table class="threads" data-testid="threads">
            <thead>
              <tr>
                <th scope="col">Process</th>
                <th scope="col">Thread</th>
                <th scope="col">{capital(counted(profile))}</th>
                {!profile.waits && <th scope="col">Share</th>}
                {states.map((state) => (
                  <th scope="col" key={state}>
                    <i class={`swatch${stateHue(state) === null ? " calm" : ""}`} style={{ "--hue": stateHue(state) }} />
                    {stateName(state)}
                  </th>
                ))}
                {timed && <th scope="col">CPU time</th>}
                {timed && wall > 0 && <th scope="col">Of wall time</th>}
              </tr>
            </thead>
            <tbody>
              {rows.slice(0, printing ? rows.length : most).map(({ process, thread, value, states: of }) => {
                const { label, container } = profile.processes[process] ?? { label: "?" };
                const one = profile.threads[thread];
                return (
                  <tr key={`${process} ${thread}`}>
                    <td title={short(label, 1000)}>
                      {short(label, 120)} {container && <span class="place">{container}</span>}
                    </td>
                    <td>
                      {one ? (
                        <button class="plain" onClick={() => set({ thread: String(thread), process: String(process) })} title="Show this thread only">
                          {short(one.label, 60)}
                        </button>
                      ) : (
                        "all"
                      )}
                    </td>
                    <td>{bare(profile, value)}</td>
                    {!profile.waits && <Share part={value} all={all} />}
                    {states.map((state) => (
                      <Share key={state} part={of.get(state) ?? 0} all={value} title={amount(profile, of.get(state) ?? 0)} />
                    ))}
                    {timed && <td>{cpuTime(profile, value)}</td>}
                    {timed && wall > 0 && <td>{wallShare(profile, value, wall)}</td>}
                  </tr>
                );
              })}
            </tbody>
          </table>
        </div>
      ) : (
        <p>{profile.empty ? `No ${counted(profile)} with Python frames.` : "Nothing passes the filters."}</p>
      )}
      {rows.length > most && !printing && (
        <button class="plain" onClick={() => setMost(most * 10)}>
          {number(rows.length - most)} more
        </button>
      )}
    </section>
  );
}

export function RunView({ model }) {
  const { profile } = model;
  const groups = new Map();
  for (const entry of profile.account) {
    if (!entry.value) continue;
    if (!groups.has(entry.group)) groups.set(entry.group, []);
    groups.get(entry.group).push(entry);
  }
  const title = (group) => {
    const name = group === "asked" && !isSamples(profile) && !isTime(profile) ? "Events asked for" : (GROUPS[group] ?? group);
    // The counts of all others are of all that was recorded.
    return !groups.has("left out") || ["left out", "thread_ns"].includes(group) ? name : `${name}, without filters`;
  };
  return (
    <div class="run" data-testid="run" tabIndex={0} aria-label="Run">
      {profile.diff && (
        <section>
          <h2>Comparison</h2>
          <p>
            Red grew and blue shrank by more than runs of one program differ by. Functions are judged by their own samples,
            against those of what did not change; no change was seen in what is grey. Intervals are of{" "}
            {percent(profile.diff.confidence)}.
          </p>
          {profile.diff.notes.trim().split("\n").map((note) => (
            <p key={note}>{note}</p>
          ))}
        </section>
      )}
      <section>
        <h2>Run</h2>
        <dl class="facts tall">
          {Object.entries(profile.facts).filter(([key, value]) => key !== "cpus" || value !== "0").map(([key, value]) => {
            return (
              <div key={key}>
                <dt>{profile.titles[key]}</dt>
                <dd>{WORDS[key]?.(value) ?? value}</dd>
              </div>
            );
          })}
          {!profile.facts.command && !profile.diff && (
            <div>
              <dt>Command</dt>
              <dd class="place">not recorded, as it may hold secrets; pybpf --cmdline records it</dd>
            </div>
          )}
          <div>
            <dt>Values</dt>
            <dd>
              {isSamples(profile) || isTime(profile) ? `${profile.measure.name} (${profile.measure.unit})` : countedOf(profile)}
              {profile.measure.period_ns ? `, each stands for ${seconds(profile.measure.period_ns / 1e9)} of CPU time` : ""}
            </dd>
          </div>
        </dl>
      </section>
      <Threads model={model} />
      <section>
        <h2>Account</h2>
        {[...groups].map(([group, entries]) => (
          <div key={group} class="account">
            <h3>{title(group)}</h3>
            <ul>
              {entries.map(({ key, text, value }) => (
                <li key={key}>
                  <b>{group === "thread_ns" ? seconds(value / 1e9) : number(value)}</b> {text || key}
                </li>
              ))}
            </ul>
          </div>
        ))}
        {!groups.size && <p>The profile has no account.</p>}
      </section>
    </div>
  );
}
