// SPDX-License-Identifier: Apache-2.0
// Parts that several views have.

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

import { amount, cpuTime, number, percent, points } from "./format.js";
import { nodeLabel, row } from "./look.js";

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

// A list of many rows of one height, of which those that are seen exist. render(i) -> row.
export function Rows({ count, height, render, label, reveal }) {
  const box = useRef();
  const [seen, setSeen] = useState([0, 60]);
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
    if (reveal >= 0) box.current.scrollTop = Math.max(0, reveal * height - box.current.clientHeight / 3);
  }, [reveal]);
  const first = Math.min(seen[0], Math.max(0, count - 1));
  const last = Math.min(count, seen[1]);
  return (
    <div class="rows" ref={box} onScroll={look} role="rowgroup" aria-label={label} tabIndex={0}>
      <div style={{ height: `${count * height}px` }}>
        <div style={{ transform: `translateY(${first * height}px)` }}>{Array.from({ length: Math.max(0, last - first) }, (_, i) => render(first + i))}</div>
      </div>
    </div>
  );
}

// What is known of a node: [what, value] pairs.
export function facts(profile, tree, node) {
  const total = tree.total[node];
  const share = (value, all) => percent(all ? value / all : 0);
  const time = cpuTime(profile, total);
  if (tree.was) {
    const before = tree.was[node];
    const change = total / (profile.total || 1) - before / (profile.totalBefore || 1);
    const found = row(profile, tree.keys, tree.key[node]);
    const list = [
      ["before", `${share(before, profile.totalBefore)} (${number(before)})`],
      ["after", `${share(total, profile.total)} (${number(total)})`],
      ["change", `${points(change)} points`],
    ];
    if (found) {
      list.push(["whole function", `${points(found.after - found.before)} points (${points(found.low)} to ${points(found.high)})`]);
      list.push(["verdict", ["shrank", "within the noise", "grew"][found.verdict + 1]]);
    }
    return list;
  }
  return [
    ["total", `${share(total, profile.total)}, ${amount(profile, total)}${time && `, ${time}`}`],
    ["self", `${share(tree.self[node], profile.total)}, ${amount(profile, tree.self[node])}`],
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
  const place = tree.key[node] >= 0 && tree.keys.place(tree.key[node]);
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

// The chosen node, with what can be done with it.
export function Details({ profile, tree, node, set, close }) {
  const key = tree.key[node];
  const file = key >= 0 ? tree.keys.file[key] : "";
  return (
    <section class="details" aria-label="Details" data-testid="details">
      <div class="who">
        <b>{nodeLabel(tree, node)}</b>
        {key >= 0 && <span class="place">{tree.keys.place(key)}</span>}
      </div>
      <Facts list={facts(profile, tree, node)} />
      <div class="actions">
        {key >= 0 && <button onClick={() => set({ view: "callers", fn: String(key) })}>Callers</button>}
        {file && <button onClick={() => set({ view: "source", file })}>Source</button>}
        <button onClick={close} aria-label="Close details">
          {"\u2715"}
        </button>
      </div>
    </section>
  );
}
