// SPDX-License-Identifier: Apache-2.0
// The range of time that every view is of: chosen in a picture of the CPUs used over time, or by its ends; and in words
// what the views show when a range or another filter leaves something out.

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";

import { amount, bare, capital, countedOf, cpuTime, isTime, number, percent, seconds, short, wallShare } from "./format.js";
import { stateColour, theme } from "./look.js";
import { duration } from "./timeline.js";

const HEIGHT = 34; // pixels
const BINS = 240;
const CHOSEN = 4; // pixels that make a press a choice of a range
const PALE = 0.4; // of what is beside the range
const US = 1e6;

// Microseconds that the profile covers.
export function extent(profile) {
  return Math.max((Number(profile.facts.duration_s) || 0) * US, profile.lastTime + 1);
}

// Seconds on the clock on the wall that what is shown took.
export function wallTime({ profile, range }) {
  if (range) return Math.max(0, Math.min(range[1], extent(profile)) - range[0]) / US;
  return Number(profile.facts.duration_s) || 0;
}

const chosen = (from, to) => `${Math.max(0, Math.round(from))}-${Math.round(to)}`;

// What was taken in each of the bins that the profile's time is divided into: [{state, bins}], of which the states that threads
// waited in come after the one in which they ran, "", the largest first. The time that a sample stands for is around it.
function binned({ profile, passes }) {
  const whole = extent(profile);
  const width = whole / BINS;
  const bin = (time) => Math.min(BINS - 1, Math.max(0, Math.floor(time / width)));
  const { eventTime, eventSample, eventValue, eventLength, sampleStack } = profile;
  const found = new Map();
  for (let e = 0; e < eventTime.length; e++) {
    const sample = eventSample[e];
    if (!sampleStack[sample] || !passes(sample)) continue;
    const state = profile.stateOf(sampleStack[sample]);
    if (!found.has(state)) found.set(state, { state, total: 0, bins: new Float64Array(BINS) });
    const one = found.get(state);
    one.total += eventValue[e];
    const length = profile.intervals ? eventValue[e] : 0;
    const begin = Math.max(0, eventTime[e] - (eventLength[e] ? 0 : length / 2));
    const end = Math.min(whole, begin + length);
    const [first, last] = [bin(begin), bin(end)];
    for (let b = first; b <= last; b++) {
      const inside = first === last ? 1 : (Math.min(end, (b + 1) * width) - Math.max(begin, b * width)) / (end - begin);
      one.bins[b] += inside * eventValue[e];
    }
  }
  return [...found.values()].sort((x, y) => (y.state === "") - (x.state === "") || y.total - x.total);
}

// What the bars are of, and how much that is. A bar has few samples of the CPU: one more or less is no use of another CPU.
function caption(profile, layers, most) {
  const mean = layers.reduce((sum, { total }) => sum + total, 0) / extent(profile);
  if (profile.intervals) return ["What threads did over time", `${mean.toFixed(1)} threads on average`];
  const { period_ns } = profile.measure;
  if (period_ns) return ["CPU use over time", `${((mean * period_ns) / 1e9 * US).toFixed(1)} CPUs on average`];
  return [`${capital(countedOf(profile))} over time`, `up to ${number(most / (extent(profile) / US / BINS))} a second`];
}

export function Range({ model }) {
  const { profile, range, passes, dark, set } = model;
  const canvas = useRef();
  const [drag, setDrag] = useState(null); // [from, to] as shares of the width, while it is chosen
  const [width, setWidth] = useState(0);
  const whole = extent(profile);
  const layers = useMemo(() => binned(model), [profile, passes]);
  const most = useMemo(() => Array.from({ length: BINS }, (_, b) => layers.reduce((sum, { bins }) => sum + bins[b], 0)).reduce((x, y) => Math.max(x, y), 0), [layers]);
  useLayoutEffect(() => {
    const watcher = new ResizeObserver(() => setWidth(canvas.current?.clientWidth ?? 0));
    watcher.observe(canvas.current);
    return () => watcher.disconnect();
  }, []);
  useLayoutEffect(() => {
    const c = canvas.current.getContext("2d");
    const t = theme(dark);
    canvas.current.width = width * devicePixelRatio;
    canvas.current.height = HEIGHT * devicePixelRatio;
    c.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
    const [from, to] = (drag ?? (range ? range.map((time) => time / whole) : [0, 1])).map((share) => share * width);
    const bar = width / BINS;
    for (let i = 0; i < BINS; i++) {
      const middle = (i + 0.5) * bar;
      c.globalAlpha = middle >= from && middle <= to ? 1 : PALE;
      let y = HEIGHT;
      for (const { state, bins } of layers) {
        const h = (bins[i] / (most || 1)) * (HEIGHT - 4);
        c.fillStyle = profile.intervals ? stateColour(t, state) : t.used;
        c.fillRect(i * bar, (y -= h), Math.max(bar - 0.5, 0.5), h);
      }
    }
    c.globalAlpha = 1;
    if (!range && !drag) return;
    c.strokeStyle = t.outline;
    c.strokeRect(from + 0.5, 0.5, Math.max(to - from - 1, 1), HEIGHT - 1);
  }, [layers, range, drag, width, dark]);
  const at = (e) => {
    const box = canvas.current.getBoundingClientRect();
    return Math.min(1, Math.max(0, (e.clientX - box.left) / box.width));
  };
  const origin = useRef(null);
  const down = (e) => {
    canvas.current.setPointerCapture(e.pointerId);
    origin.current = at(e);
  };
  const move = (e) => {
    if (origin.current === null) return;
    setDrag([Math.min(origin.current, at(e)), Math.max(origin.current, at(e))]);
  };
  const up = (e) => {
    if (origin.current === null) return;
    const [from, to] = [Math.min(origin.current, at(e)), Math.max(origin.current, at(e))];
    origin.current = null;
    setDrag(null);
    if (e.type === "pointercancel") return;
    set({ t: (to - from) * width < CHOSEN ? "" : chosen(from * whole, to * whole) });
  };
  const [what, amounts] = caption(profile, layers, most);
  return (
    <div class="range" data-testid="range">
      <p class="caption" title={what}>
        {what} <small>{amounts}</small>
      </p>
      <div class="bars">
        <canvas
          ref={canvas}
          role="img"
          aria-label={`${what}, ${amounts}, of the ${duration(whole)} of the profile; a drag chooses the range that all views show, and so do the fields From and To`}
          title="Drag to choose the range of time that all views show; click for all"
          onPointerDown={down}
          onPointerMove={move}
          onPointerUp={up}
          onPointerCancel={up}
        />
        {drag && (
          <span class="ends">
            {duration(drag[0] * whole)} to {duration(drag[1] * whole)}
          </span>
        )}
      </div>
      <RangeFields model={model} />
    </div>
  );
}

function Field({ label, value, empty, apply }) {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  return (
    <label class="choice">
      <span>{label}</span>
      <input
        type="number"
        min="0"
        step="any"
        value={text}
        placeholder={empty}
        aria-label={`${label} that time, in seconds`}
        onInput={(e) => setText(e.currentTarget.value)}
        onChange={(e) => apply(e.currentTarget.value)}
      />
    </label>
  );
}

// The ends of the range in seconds, for who does not drag.
function RangeFields({ model }) {
  const { profile, range, set } = model;
  const whole = extent(profile);
  const [from, to] = range ?? [0, whole];
  const words = (us) => String(Math.round(us) / US);
  const apply = (begin, end) => {
    const all = begin <= 0 && end >= whole;
    if (end > begin) set({ t: all ? "" : chosen(begin, end) });
  };
  return (
    <>
      <Field label="From" value={range ? words(from) : ""} empty="0 s" apply={(text) => apply(Number(text) * US, to)} />
      <Field label="To" value={range ? words(to) : ""} empty={duration(whole)} apply={(text) => apply(from, text === "" ? whole : Number(text) * US)} />
    </>
  );
}

// What is shown of the profile where that is not all, and what left the rest out.
export function Scope({ model }) {
  const { profile, state, range, tree, set } = model;
  const chips = [];
  const chip = (key, text, change) => chips.push({ key, text, change });
  if (range) chip("t", `${duration(range[0])} to ${duration(Math.min(range[1], extent(profile)))}`, { t: "" });
  if (state.container !== "") chip("container", `container ${profile.containers[Number(state.container)] || "[host]"}`, { container: "" });
  if (state.process !== "") chip("process", profile.processes[Number(state.process)].label, { process: "" });
  if (state.thread !== "") chip("thread", profile.threads[Number(state.thread)].label, { thread: "" });
  const total = tree.total[0];
  const wall = wallTime(model);
  const time = cpuTime(profile, total);
  const untimed = range ? profile.untimed : 0;
  return (
    <div class={chips.length ? "scope" : "said"} role="status" data-testid="scope">
      {chips.length > 0 && (
        <>
          <span>
            <b>
              {bare(profile, total)} of {amount(profile, profile.total)}
            </b>{" "}
            shown ({percent(profile.total ? total / profile.total : 0)})
            {time && `, ${time} of CPU time`}
            {time && wall > 0 && `, ${wallShare(profile, total, wall)} of ${seconds(wall)}`}
            {untimed > 0 && (isTime(profile) ? `; it is not known when ${amount(profile, untimed)} more were` : `; the time of ${amount(profile, untimed)} was not kept`)}
          </span>
          {chips.map(({ key, text, change }) => (
            <button key={key} class="chip" onClick={() => set(change)} title="Show all again" aria-label={`Show all again, not only ${short(text, 50)}`}>
              {short(text, 50)} {"\u2715"}
            </button>
          ))}
        </>
      )}
    </div>
  );
}
