// SPDX-License-Identifier: Apache-2.0
// What is known of the run: facts, what became of samples, who was profiled.

import { amount, number, percent, seconds } from "./format.js";

const NAMES = {
  pybpf: ["pybpf", (v) => `version ${v}`],
  host: ["Machine"],
  kernel: ["Kernel"],
  arch: ["Architecture"],
  cpus: ["CPUs sampled"],
  start_ns: ["Began", (v) => moment(v)],
  duration_s: ["Lasted", (v) => seconds(Number(v))],
  freq_hz: ["Rate", (v) => `${v} Hz`],
  event: ["Event"],
  command: ["Command"],
};
const GROUPS = {
  asked: "Samples asked for",
  lost: "Lost",
  without: "Without Python frames",
  python: "With Python frames",
  incomplete: "Incomplete",
  processes: "Processes",
};

export function moment(start_ns) {
  const date = new Date(Number(start_ns) / 1e6);
  return Number.isNaN(date.getTime()) ? start_ns : date.toLocaleString([], { dateStyle: "medium", timeStyle: "medium" });
}

// The words under the title: what, when, how long, how many, and what was lost.
export function summary(profile) {
  const { processes, facts, account, diff, total } = profile;
  if (diff) {
    return {
      what: `${diff.after} compared with ${diff.before}`,
      words: [`${number(diff.before_total)} before, ${number(diff.after_total)} after`, "shares of each one's total"],
    };
  }
  const names = [...new Set(processes.map((p) => p.label))];
  const others = names.length - 1;
  const what = others < 0 ? "no process" : others ? `${names[0]} and ${others} other process${others > 1 ? "es" : ""}` : names[0];
  const words = [];
  if (facts.start_ns) words.push(moment(facts.start_ns));
  if (facts.duration_s) words.push(seconds(Number(facts.duration_s)) + (facts.freq_hz ? ` at ${facts.freq_hz} Hz` : ""));
  words.push(amount(profile, total));
  const lost = account.filter((a) => a.group === "lost").reduce((sum, a) => sum + a.value, 0);
  return { what, words, lost };
}

export function RunView({ model }) {
  const { profile } = model;
  const groups = new Map();
  for (const entry of profile.account) {
    if (!entry.value) continue;
    if (!groups.has(entry.group)) groups.set(entry.group, []);
    groups.get(entry.group).push(entry);
  }
  return (
    <div class="run" data-testid="run">
      {profile.diff && (
        <section>
          <h2>Comparison</h2>
          <p>
            Red grew and blue shrank by more than chance explains; what is grey may not have changed at all. Intervals are of{" "}
            {percent(profile.diff.confidence)}. A share also shrinks when another one grows.
          </p>
        </section>
      )}
      <section>
        <h2>Run</h2>
        <dl class="facts tall">
          {Object.entries(profile.facts).map(([key, value]) => {
            const [name, words] = NAMES[key] ?? [key];
            return (
              <div key={key}>
                <dt>{name}</dt>
                <dd>{words ? words(value) : value}</dd>
              </div>
            );
          })}
          <div>
            <dt>Values</dt>
            <dd>
              {profile.measure.name} ({profile.measure.unit})
              {profile.measure.period_ns ? `, each stands for ${seconds(profile.measure.period_ns / 1e9)} of CPU time` : ""}
            </dd>
          </div>
        </dl>
      </section>
      <section>
        <h2>Account</h2>
        {[...groups].map(([group, entries]) => (
          <div key={group} class="account">
            <h3>{GROUPS[group] ?? group}</h3>
            <ul>
              {entries.map(({ key, text, value }) => (
                <li key={key}>
                  <b>{number(value)}</b> {text || key}
                </li>
              ))}
            </ul>
          </div>
        ))}
        {!groups.size && <p>The profile has no account of its samples.</p>}
      </section>
      <section>
        <h2>Processes and threads</h2>
        <ul class="who-list">
          {profile.processes.slice(0, 1000).map((process, p) => (
            <li key={p}>
              {process.label}
              {process.container && <span class="place"> {process.container}</span>}
              <small>
                {profile.threads
                  .filter((t) => t.process === p)
                  .slice(0, 200)
                  .map((t) => t.label)
                  .join(", ")}
              </small>
            </li>
          ))}
        </ul>
      </section>
    </div>
  );
}
