// SPDX-License-Identifier: Apache-2.0
// A small histogram of how long single waits were.

import { number } from "./format.js";

const FIRST = 1000; // microseconds: of shorter waits no times are kept

// 1, 2, 5, 10...: the bucket of a length, and where a bucket begins.
const beginOf = (bucket) => FIRST * [1, 2, 5][bucket % 3] * 10 ** Math.floor(bucket / 3);

// What a bucket begins with, which has one digit that is not 0.
const whole = (us) => (us < 1e6 ? `${us / 1000} ms` : `${us / 1e6} s`);

export function bucketOf(length) {
  let bucket = 0;
  while (length >= beginOf(bucket + 1)) bucket++;
  return bucket;
}

// lengths: in microseconds; count: of all waits, also those whose times were not kept.
export function Lengths({ lengths, count }) {
  const buckets = lengths.map(bucketOf);
  const first = buckets.reduce((x, y) => Math.min(x, y));
  const last = buckets.reduce((x, y) => Math.max(x, y));
  const bars = Array.from({ length: last - first + 1 }, (_, i) => {
    const [begin, end] = [first + i, first + i + 1].map((bucket) => whole(beginOf(bucket)));
    return { label: `\u2265 ${begin}`, words: `${begin} to ${end}`, n: 0 };
  });
  for (const bucket of buckets) bars[bucket - first].n++;
  if (count > lengths.length) bars.unshift({ label: "shorter", words: "shorter than 1 ms, or not kept one by one", n: count - lengths.length });
  if (bars.length < 2) return null; // the words have told it
  const highest = Math.max(...bars.map(({ n }) => n));
  return (
    <div class="lengths" role="img" data-testid="lengths" aria-label={`Lengths of waits. ${bars.map(({ words, n }) => `${words}: ${number(n)}`).join("; ")}`}>
      {bars.map(({ label, words, n }) => (
        <span key={label} class={n ? "" : "none"} style={{ "--share": n / highest }} title={`${words}: ${number(n)}`}>
          <b>{n ? number(n) : ""}</b>
          <i />
          <small>{label}</small>
        </span>
      ))}
    </div>
  );
}
