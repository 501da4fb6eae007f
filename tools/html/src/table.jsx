// SPDX-License-Identifier: Apache-2.0
// The table of functions, or of lines.

import { useEffect, useMemo, useState } from "preact/hooks";

import { bare, brief, difference, finding, percent } from "./format.js";
import { row as comparison, verdictOf } from "./look.js";
import { Name, Note, Rows } from "./parts.jsx";

export function useMedia(words) {
  const query = useMemo(() => matchMedia(words), []);
  const [matches, setMatches] = useState(query.matches);
  useEffect(() => {
    const tell = () => setMatches(query.matches);
    query.addEventListener("change", tell);
    return () => query.removeEventListener("change", tell);
  }, []);
  return matches;
}

const VERDICTS = ["shrank", "noise", "grew"];

// beside: it stands beside a graph, which has the callers.
export function TableView({ model, beside }) {
  const { profile, tree, sums, state, set, found } = model;
  const { keys } = tree;
  const narrow = useMedia("(max-width: 640px)");
  const compared = !!tree.was;
  const changes = useMemo(() => {
    if (!compared) return null;
    const { before_unit, after_unit } = profile.diff;
    return Float64Array.from(sums.self, (value, k) => value * after_unit - sums.wasSelf[k] * before_unit);
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
  const all = tree.whole.total || 1;
  const head = (key, text) => (
    <span role="columnheader" class={`cell ${key}`} aria-sort={state.sort !== key ? "none" : key === "name" ? "ascending" : "descending"}>
      <button class={key} onClick={() => set({ sort: key })} title="Sort by this column">
        {text}
        {state.sort === key ? (key === "name" ? " \u25b4" : " \u25be") : ""}
      </button>
    </span>
  );
  const bar = (value) => (
    <span role="cell" class="cell number" style={{ "--share": value / all }}>
      <span>{percent(value / all)}</span>
      <small>{bare(profile, value)}</small>
    </span>
  );
  const one = (i, tabIndex) => {
    const k = rows[i];
    const open = () => set({ view: "graph", fn: String(k), q: "" });
    const verdict = compared && comparison(profile, keys, k);
    return (
      <div class={`row${state.fn === String(k) ? " chosen" : ""}`} role="row" aria-rowindex={i + 2} key={k} style={{ height: `${narrow ? 48 : 32}px` }}>
        {bar(sums.self[k])}
        {bar(sums.total[k])}
        {compared && (
          <span role="cell" class={`cell change ${verdict ? VERDICTS[verdict.verdict + 1] : "noise"}`}>
            <span>{difference(profile.diff.unit, changes[k])}</span>
            <small title={verdict ? finding(verdict) : ""}>{verdict ? brief(verdict) : ""}</small>
          </span>
        )}
        <span role="cell" class="cell name">
          <button class="name" data-row={i} tabIndex={tabIndex} onClick={open}>
            <Name keys={keys} k={k} />
          </button>
        </span>
        {!beside && (
          <span role="cell" class="cell calls">
            <button class="callers-of" tabIndex={tabIndex} onClick={() => set({ view: "callers", fn: String(k) })} title="Show its callers">
              Callers
            </button>
          </span>
        )}
      </div>
    );
  };
  if (!rows.length) return <Note title="Nothing here">{state.q ? "No function matches the search." : "Nothing passes the filters."}</Note>;
  return (
    <div class={`table${compared ? " compared" : ""}`} role="table" aria-label="Functions" aria-rowcount={rows.length + 1} data-testid="table">
      <div role="rowgroup">
        <div class="row head" role="row" aria-rowindex={1}>
          {head("self", "Self")}
          {head("total", "Total")}
          {compared && head("change", `Change of self${profile.diff.unit === "share" ? ", points" : ""}`)}
          {head("name", state.by === "line" ? "Line" : "Function")}
          {!beside && <span role="columnheader" class="cell last" aria-label="Callers" />}
        </div>
      </div>
      <Rows count={rows.length} height={narrow ? 48 : 32} render={one} label="Functions" />
    </div>
  );
}
