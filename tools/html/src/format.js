// SPDX-License-Identifier: Apache-2.0
// Numbers and times in words.

const EVENT = 60; // letters of an event's name
const UNITS = ["bytes", "KiB", "MiB", "GiB", "TiB"];
const plain = new Intl.NumberFormat("en");

export const number = (value) => plain.format(Math.round(value));

export function percent(share) {
  const p = 100 * share;
  return `${p === 0 || p >= 99.95 ? p.toFixed(0) : p >= 10 ? p.toFixed(1) : p >= 0.01 ? p.toFixed(2) : "<0.01"} %`;
}

// As a regular expression that finds these characters themselves.
export const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

// Without the middle where it has more letters than that.
export function short(text, most) {
  if (text.length <= most) return text;
  const letters = Array.from(text);
  if (letters.length <= most) return text;
  const head = Math.ceil(most * 0.6);
  let tail = letters.length - (most - head - 1);
  while (/^\p{M}$/u.test(letters[tail])) tail++; // an accent without its letter
  return `${letters.slice(0, head).join("")}\u2026${letters.slice(tail).join("")}`;
}

// A change of a share, in points of percent.
export function points(share) {
  const p = Math.round(10000 * share) / 100;
  return `${p > 0 ? "+" : p < 0 ? "\u2212" : "\u00b1"}${Math.abs(p).toFixed(2)}`;
}

// A difference in the unit of a comparison.
export function difference(unit, value) {
  if (unit === "share") return points(value);
  return `${value > 0 ? "+" : value < 0 ? "\u2212" : "\u00b1"}${Math.abs(value).toFixed(unit === "s" ? 3 : 2)} ${unit}`;
}

// A value in the unit of a comparison.
export const valueIn = (unit, value) => (unit === "share" ? percent(value) : `${value.toFixed(unit === "s" ? 3 : 2)} ${unit}`);

// A relative change: 0.25 is a quarter more. null, which infinity becomes in JSON, is any.
export function relative(value, signed = true) {
  if (value === null) return "any";
  const sign = !signed ? "" : value > 0 ? "+" : value < 0 ? "\u2212" : "\u00b1";
  if (value >= 10) return `${sign}${(value + (signed ? 0 : 1)).toFixed(0)} times`;
  return `${sign}${Math.abs(100 * value).toFixed(Math.abs(value) < 0.0995 ? 1 : 0)} %`;
}

// What a comparison says of a function's own samples.
export function finding(found) {
  if (found.words === "few") return "too few samples to judge";
  if (found.words === "new") return "new";
  if (found.verdict || found.words === "likely") return `${found.words} ${relative(found.change)} (${relative(found.low)} to ${relative(found.high)})`;
  const why = found.words === "spread" ? "; runs differ by as much" : "";
  return `no change seen${why}; one below ${relative(found.noticeable, false)} would not show`;
}

// The same in a cell.
export function brief(found) {
  if (found.words === "few") return "too few samples";
  if (found.words === "spread") return "runs differ by as much";
  if (found.words === "noise") return `none seen above ${relative(found.noticeable, false)}`;
  return finding(found);
}

export function seconds(value) {
  if (value >= 100) return `${number(value)} s`;
  if (value >= 1) return `${value.toFixed(2)} s`;
  return value >= 0.001 ? `${(value * 1000).toFixed(0)} ms` : `${(value * 1e6).toFixed(0)} \u00b5s`;
}

// Whether values are time that threads spent, and not samples.
export const isTime = ({ measure }) => measure.unit === "microseconds";

// Whether values are samples of the clock, and not memory or events of another kind.
export const isSamples = ({ measure }) => measure.unit === "count" && (measure.period_ns > 0 || measure.name === "samples");

// What is counted: "samples", "time", "memory", "page faults"; "hits" of a tracepoint or a probe.
export function counted(profile) {
  const { name, unit } = profile.measure;
  if (isTime(profile)) return "time";
  if (unit === "bytes") return "memory";
  return name.includes(":") ? "hits" : name.replaceAll("-", " ");
}

// The same, and of which tracepoint or probe.
export function countedOf(profile) {
  const what = counted(profile);
  return what === "hits" ? `hits of ${short(profile.measure.name, EVENT)}` : what;
}

export const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

function bytes(value) {
  const step = Math.min(UNITS.length - 1, Math.floor(Math.log2(Math.max(1, Math.abs(value))) / 10));
  return `${step ? (value / 1024 ** step).toFixed(1) : number(value)} ${UNITS[step]}`;
}

// "1,234 samples", "1.23 s", "1.2 MiB".
export function amount(profile, value) {
  if (isTime(profile)) return seconds(value / 1e6);
  if (profile.measure.unit === "bytes") return bytes(value);
  const what = counted(profile);
  return `${number(value)} ${value === 1 ? what.replace(/(?<=ch|ss)es$|s$/, "") : what}`;
}

// The same, where what is counted is told elsewhere.
export const bare = (profile, value) => (profile.measure.unit === "count" ? number(value) : amount(profile, value));

// What the account counts, whatever the profile's values are.
export const taken = (profile, value) => (isSamples(profile) || isTime(profile) ? "sample" : "event") + (value === 1 ? "" : "s");

export function cpuTime({ measure }, value) {
  return measure.period_ns && measure.unit === "count" ? seconds((value * measure.period_ns) / 1e9) : "";
}

// The same time on the clock on the wall, as a share of it: threads that run at once make it more than all.
export function wallShare({ measure }, value, wall_s) {
  return measure.period_ns && measure.unit === "count" && wall_s > 0 ? percent((value * measure.period_ns) / 1e9 / wall_s) : "";
}
