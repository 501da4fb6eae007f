// SPDX-License-Identifier: Apache-2.0
// Numbers and times in words.

const plain = new Intl.NumberFormat("en");

export const number = (value) => plain.format(Math.round(value));

export function percent(share) {
  const p = 100 * share;
  return `${p === 0 || p >= 99.95 ? p.toFixed(0) : p >= 10 ? p.toFixed(1) : p >= 0.01 ? p.toFixed(2) : "<0.01"} %`;
}

// A change of a share, in points of percent.
export function points(share) {
  const p = Math.round(10000 * share) / 100;
  return `${p > 0 ? "+" : p < 0 ? "\u2212" : "\u00b1"}${Math.abs(p).toFixed(2)}`;
}

export function seconds(value) {
  if (value >= 100) return `${number(value)} s`;
  if (value >= 1) return `${value.toFixed(2)} s`;
  return value >= 0.001 ? `${(value * 1000).toFixed(0)} ms` : `${(value * 1e6).toFixed(0)} \u00b5s`;
}

// "1,234 samples", and the CPU time that they stand for.
export function amount({ measure }, value) {
  const what = measure.unit === "count" ? measure.name : measure.unit;
  return `${number(value)} ${value === 1 ? what.replace(/s$/, "") : what}`;
}

export function cpuTime({ measure }, value) {
  return measure.period_ns && measure.unit === "count" ? seconds((value * measure.period_ns) / 1e9) : "";
}
