// SPDX-License-Identifier: Apache-2.0
// Parts that several views have.

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

import { amount, bare, cpuTime, difference, finding, number, percent, seconds, short, valueIn } from "./format.js";
import { nodeLabel, row, stateName } from "./look.js";
import { usePrinting } from "./printing.js";
import { CODES, KIND_KERNEL, KIND_NATIVE } from "./profile.js";
import { sharesOf, statesOf } from "./tree.js";

const TITLE = 1000; // letters of a name beside the pointer

export function Choice({ label, value, options, onChange }) {
  return (
    <label class="choice">
      <span>{label}</span>
      <select value={value} onChange={(e) => onChange(e.currentTarget.value)} aria-label={label}>
        {options.map(([key, text]) => (
          <option key={key} value={key} selected={key === value}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}

export function Note({ title, children }) {
  return (
    <div class="note">
      <h2>{title}</h2>
      <div>{children}</div>
    </div>
  );
}

// A function's or a line's name and place, without their middles where they are long.
// via: the function of a library that it calls, which is meant; -1: none.
export function Name({ keys, k, via = -1 }) {
  const place = keys.shortPlace(k);
  return (
    <span class="named" title={short(keys.text(k) + (via < 0 ? "" : `, via ${keys.text(via)}`), TITLE)}>
      <b>{keys.label(k)}</b>
      {place && " "}
      {place && <span class="place">{place}</span>}
      {via >= 0 && (
        <span class="place">
          {" "}
          via {keys.label(via)}
        </span>
      )}
    </span>
  );
}

// A list of many rows of one height, of which those that are seen exist. render(i, tabIndex) -> row, in which the
// element with data-row={i} gets the focus: arrow keys, Page Up and Down, Home and End move it. moved(i): it has it.
export function Rows({ count, height, render, label, reveal, moved }) {
  const box = useRef();
  const wanted = useRef(-1);
  const [active, setActive] = useState(0);
  const [seen, setSeen] = useState([0, 60]);
  const printing = usePrinting();
  const look = () => {
    const { scrollTop, clientHeight } = box.current;
    setSeen([Math.max(0, Math.floor(scrollTop / height) - 10), Math.ceil((scrollTop + clientHeight) / height) + 10]);
  };
  useLayoutEffect(() => {
    const watcher = new ResizeObserver(look);
    watcher.observe(box.current);
    return () => watcher.disconnect();
  }, [height]);
  useEffect(() => {
    if (!(reveal >= 0)) return;
    setActive(reveal);
    box.current.scrollTop = Math.max(0, reveal * height - box.current.clientHeight / 3);
  }, [reveal]);
  useLayoutEffect(() => {
    const row = wanted.current >= 0 && box.current.querySelector(`[data-row="${wanted.current}"]`);
    if (!row) return;
    wanted.current = -1;
    row.focus({ preventScroll: true });
  });
  const current = Math.min(active, count - 1);
  const press = (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const { scrollTop, clientHeight } = box.current;
    const page = Math.max(1, Math.floor(clientHeight / height) - 1);
    const inside = e.target !== box.current; // else the row that the keys left last gets the focus
    const steps = { ArrowDown: inside ? 1 : 0, ArrowUp: inside ? -1 : 0, PageDown: page, PageUp: -page, Home: -count, End: count };
    if (!(e.key in steps)) return;
    e.preventDefault();
    e.stopPropagation();
    const to = Math.min(count - 1, Math.max(0, current + steps[e.key]));
    if (to * height < scrollTop) box.current.scrollTop = to * height;
    else if ((to + 1) * height > scrollTop + clientHeight) box.current.scrollTop = (to + 1) * height - clientHeight;
    wanted.current = to;
    setActive(to);
    look();
    moved?.(to);
  };
  const first = printing ? 0 : Math.min(seen[0], Math.max(0, count - 1));
  const last = printing ? count : Math.min(count, seen[1]);
  return (
    <div class="rows" ref={box} onScroll={look} onKeyDown={press} role="rowgroup" aria-label={label} tabIndex={0}>
      <div style={{ height: `${count * height}px` }}>
        <div style={{ transform: `translateY(${first * height}px)` }}>
          {Array.from({ length: Math.max(0, last - first) }, (_, i) => render(first + i, first + i === current ? 0 : -1))}
        </div>
      </div>
    </div>
  );
}

// What a reader of the screen hears when it changes.
export function Said({ children }) {
  return (
    <div class="said" role="status" aria-live="polite" data-testid="said">
      {children}
    </div>
  );
}

// The kind of code of a node that is not Python.
function codeFact({ key, keys }, node) {
  const k = key[node];
  return k >= 0 && [KIND_KERNEL, KIND_NATIVE].includes(keys.kind[k]) ? [["code", CODES[keys.code[k]]]] : [];
}

// What is known of a node: [what, value] pairs.
export function facts(profile, tree, node) {
  const total = tree.total[node];
  const share = (value, all) => percent(all ? value / all : 0);
  const time = cpuTime(profile, total);
  if (tree.was) {
    const before = tree.was[node];
    const { unit, before_unit, after_unit } = profile.diff;
    const found = row(profile, tree.keys, tree.key[node]);
    const list = [
      ["before", `${valueIn(unit, before * before_unit)} (${bare(profile, before)})`],
      ["after", `${valueIn(unit, total * after_unit)} (${bare(profile, total)})`],
      ["change", `${difference(unit, total * after_unit - before * before_unit)}${unit === "share" ? " points" : ""}`],
    ];
    if (found) {
      list.push(["whole function, own", `${valueIn(unit, found.self_before)} \u2192 ${valueIn(unit, found.self_after)}`]);
      list.push(["verdict", finding(found)]);
    }
    return [...list, ...codeFact(tree, node)];
  }
  const key = tree.key[node];
  const waits = tree.waits?.[node] ?? 0;
  const states = profile.waits && !tree.mixed ? sharesOf(profile, tree, node) : [];
  return [
    ["total", `${share(total, tree.whole.total)}, ${amount(profile, total)}${time && `, ${time}`}`],
    ["self", `${share(tree.self[node], tree.whole.total)}, ${amount(profile, tree.self[node])}`],
    ...(waits ? [["waits", `${number(waits)}${key >= 0 && tree.keys.state[key] && !tree.mixed ? `, ${seconds(total / waits / 1e6)} each on average` : ""}`]] : []),
    ...(states.length ? [["states", states.map(([s, part]) => `${stateName(statesOf(profile, tree).names[s])} ${percent(part)}`).join(", ")]] : []),
    ...codeFact(tree, node),
  ];
}

// Beside the pointer, on the side that has more room.
export function Tip({ tip }) {
  if (!tip) return null;
  const { profile, tree, node, x, y, more } = tip;
  const right = x > innerWidth / 2;
  const above = y > innerHeight / 2;
  const style = {
    [right ? "right" : "left"]: `${(right ? innerWidth - x : x) + 14}px`,
    [above ? "bottom" : "top"]: `${(above ? innerHeight - y : y) + 18}px`,
  };
  const place = tree.key[node] >= 0 && tree.keys.shortPlace(tree.key[node]);
  return (
    <div class="tip" style={style} role="tooltip">
      <b>{nodeLabel(tree, node)}</b>
      {place && <div class="place">{place}</div>}
      <Facts list={[...(more ?? []), ...facts(profile, tree, node)]} />
    </div>
  );
}

export function Facts({ list }) {
  return (
    <dl class="facts">
      {list.map(([what, value]) => (
        <div key={what}>
          <dt>{what}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

// In a few words what a node is, for who hears it.
export function spoken(profile, tree, node) {
  const [[, total], [, second]] = facts(profile, tree, node);
  let calls = 0;
  for (let c = node + 1; c < tree.end[node]; c = tree.end[c]) calls++;
  const place = tree.key[node] >= 0 ? `, ${tree.keys.shortPlace(tree.key[node])}` : "";
  return `${nodeLabel(tree, node)}${place}: ${tree.was ? "before" : "total"} ${total}, ${tree.was ? "after" : "self"} ${second}; row ${number(tree.depth[node] + 1)}, ${calls} beside each other in the next`;
}

// The chosen node, with what can be done with it. more: facts of the moment at which it was chosen.
export function Details({ profile, tree, node, set, close, more = [] }) {
  const [whole, setWhole] = useState(false);
  useEffect(() => setWhole(false), [tree, node]);
  const key = tree.key[node];
  const file = key >= 0 ? tree.keys.file[key] : "";
  const line = key >= 0 ? tree.keys.line[key] : -1;
  const long = key >= 0 ? tree.keys.label(key).includes("\u2026") || tree.keys.shortPlace(key).includes("\u2026") : false;
  return (
    <section class="details" aria-label="Details" data-testid="details">
      <div class="who">
        <b>{whole ? tree.keys.name[key] : nodeLabel(tree, node)}</b>
        {key >= 0 && <span class="place">{whole ? tree.keys.place(key) : tree.keys.shortPlace(key)}</span>}
        {long && (
          <button class="plain" aria-expanded={whole} onClick={() => setWhole(!whole)}>
            {whole ? "Shorter" : "Whole name"}
          </button>
        )}
      </div>
      <Facts list={[...more, ...facts(profile, tree, node)]} />
      {tree.repeats[node] > 0 && <span class="place">{"\u21bb"} stands for repeats of a chain of calls</span>}
      <div class="actions">
        {key >= 0 && <button onClick={() => set({ view: "callers", fn: String(key) })}>Callers</button>}
        {file && tree.keys.kind[key] !== KIND_NATIVE && <button onClick={() => set({ view: "source", file, line: line > 0 ? String(line) : "" })}>Source</button>}
        <button onClick={close} aria-label="Close details">
          {"\u2715"}
        </button>
      </div>
    </section>
  );
}
