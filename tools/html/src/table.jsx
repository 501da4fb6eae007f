// SPDX-License-Identifier: Apache-2.0
// The table of functions, or of lines.

import { useEffect, useMemo, useState } from "preact/hooks";

import { number, percent, points } from "./format.js";
import { row as comparison, verdictOf } from "./look.js";
import { Note, Rows } from "./parts.jsx";

const NARROW = matchMedia("(max-width: 640px)");

export function useNarrow() {
  const [narrow, setNarrow] = useState(NARROW.matches);
  useEffect(() => {
    const tell = () => setNarrow(NARROW.matches);
    NARROW.addEventListener("change", tell);
    return () => NARROW.removeEventListener("change", tell);
  }, []);
  return narrow;
}

const VERDICTS = ["shrank", "noise", "grew"];

export function TableView({ model }) {
  const { profile, tree, sums, state, set, found } = model;
  const { keys } = tree;
  const narrow = useNarrow();
  const compared = !!tree.was;
  const changes = useMemo(() => {
    if (!compared) return null;
    const share = (value, all) => value / (all || 1);
    return Float64Array.from(sums.total, (value, k) => share(value, profile.total) - share(sums.was[k], profile.totalBefore));
  }, [sums]);
  const rows = useMemo(() => {
    const list = [];
    for (let k = 0; k < keys.count; k++) if ((sums.total[k] || (compared && sums.was[k])) && (!state.q || found?.[k])) list.push(k);
    const certain = (k) => Math.abs(verdictOf(profile, keys, k));
    const by = {
      self: (x, y) => sums.self[y] - sums.self[x],
      total: (x, y) => sums.total[y] - sums.total[x],
      change: (x, y) => certain(y) - certain(x) || Math.abs(changes[y]) - Math.abs(changes[x]),
      name: (x, y) => (keys.label(x) < keys.label(y) ? -1 : keys.label(x) > keys.label(y) ? 1 : 0),
    };
    return list.sort((x, y) => by[state.sort](x, y) || sums.total[y] - sums.total[x] || x - y);
  }, [sums, state.sort, state.q, found]);
  const all = profile.total || 1;
  const head = (key, text) => (
    <button role="columnheader" class={`cell ${key}`} aria-sort={state.sort === key ? "descending" : "none"} onClick={() => set({ sort: key })}>
      {text}
      {state.sort === key ? " \u25be" : ""}
    </button>
  );
  const bar = (value) => (
    <span class="cell number" style={{ "--share": value / all }}>
      <span>{percent(value / all)}</span>
      <small>{number(value)}</small>
    </span>
  );
  const one = (i) => {
    const k = rows[i];
    const open = () => set({ view: "graph", fn: String(k), q: "" });
    const verdict = compared && comparison(profile, keys, k);
    return (
      <div class={`row${state.fn === String(k) ? " chosen" : ""}`} role="row" key={k} style={{ height: `${narrow ? 48 : 32}px` }}>
        {bar(sums.self[k])}
        {bar(sums.total[k])}
        {compared && (
          <span class={`cell change ${verdict ? VERDICTS[verdict.verdict + 1] : "noise"}`}>
            <span>{points(changes[k])}</span>
            <small>{verdict ? `${points(verdict.low)} to ${points(verdict.high)}` : ""}</small>
          </span>
        )}
        <button class="cell name" onClick={open} title="Show in the graph">
          <b>{keys.label(k)}</b> <span class="place">{keys.place(k)}</span>
        </button>
        <button class="cell callers-of" onClick={() => set({ view: "callers", fn: String(k) })} title="Show its callers">
          Callers
        </button>
      </div>
    );
  };
  if (!rows.length) return <Note title="Nothing here">{state.q ? "No function matches the search." : "No sample passes the filters."}</Note>;
  return (
    <div class={`table${compared ? " compared" : ""}`} role="table" aria-label="functions" data-testid="table">
      <div class="row head" role="row">
        {head("self", "Self")}
        {head("total", "Total")}
        {compared && head("change", "Change, points")}
        {head("name", state.by === "line" ? "Line" : "Function")}
        <span class="cell callers-of" />
      </div>
      <Rows count={rows.length} height={narrow ? 48 : 32} render={one} label="functions" />
    </div>
  );
}
