// SPDX-License-Identifier: Apache-2.0
// The table of functions with a column for each state of threads.

import { useMemo } from "preact/hooks";

import { amount, percent } from "./format.js";
import { stateHue, stateName } from "./look.js";
import { Name, Note, Rows } from "./parts.jsx";
import { useMedia } from "./table.jsx";
import { statesOf, statesOwn, statesWithCalled } from "./tree.js";

const ROW = 32; // pixels
const HIGH_ROW = 48; // with name and place below each other
const VIA = 18; // and a library's function below those
const FIRST = 84;
const COLUMN = 96;
const NAME = 220;
const NARROW = 124; // a name that stays beside the numbers while these are scrolled

const sum = (values) => values.reduce((all, value) => all + value, 0);

export function StatesView({ model }) {
  const { profile, tree, state, set, found } = model;
  const { keys } = tree;
  const narrow = useMedia("(max-width: 640px)");
  const { names, of } = statesOf(profile, tree);
  const all = tree.total[0] || 1;
  const cells = useMemo(() => (state.sums === "total" ? statesWithCalled : statesOwn)(profile, tree), [profile, tree, state.sums]);
  // Running first, then what takes most time.
  const columns = useMemo(() => names.map((_, s) => s).filter((s) => of[s]).sort((x, y) => (y === 0) - (x === 0) || of[y] - of[x]), [names, of]);
  const chosen = columns.find((s) => stateName(names[s]) === state.column) ?? -1;
  const rows = useMemo(() => {
    const list = cells.filter(({ key, via }) => !state.q || found?.[key] || found?.[via]).map((cell) => ({ ...cell, own: sum(cell.values) }));
    return list.sort((x, y) => (chosen < 0 ? 0 : y.values[chosen] - x.values[chosen]) || y.own - x.own || x.key - y.key || x.via - y.via);
  }, [cells, chosen, state.q, found]);
  if (!rows.length) return <Note title="Nothing here">{state.q ? "No function matches the search." : "Nothing passes the filters."}</Note>;
  const height = narrow ? HIGH_ROW + (rows.some(({ via }) => via >= 0) ? VIA : 0) : ROW;
  const numbers = `${FIRST}px repeat(${columns.length}, ${COLUMN}px)`;
  const layout = { gridTemplateColumns: narrow ? `${NARROW}px ${numbers}` : `${numbers} minmax(${NAME}px, 1fr)` };
  const head = (s, text) => (
    <span key={s} role="columnheader" class="cell" aria-sort={s === chosen ? "descending" : "none"}>
      <button onClick={() => set({ column: s < 0 ? "" : stateName(names[s]) })} title="Sort by this column">
        {s >= 0 && <i class={`swatch${stateHue(names[s]) === null ? " calm" : ""}`} style={{ "--hue": stateHue(names[s]) }} />}
        {text}
        {s === chosen ? " \u25be" : ""}
      </button>
    </span>
  );
  const cell = (id, value) => (
    <span key={id} role="cell" class="cell number" style={{ "--share": value / all }} title={value ? amount(profile, value) : undefined}>
      <span>{value ? percent(value / all) : ""}</span>
    </span>
  );
  const one = (i, tabIndex) => {
    const { key, via, values, own } = rows[i];
    return (
      <div class="row" role="row" aria-rowindex={i + 2} key={`${key} ${via}`} style={{ ...layout, height: `${height}px` }}>
        {cell(-1, own)}
        {columns.map((s) => cell(s, values[s]))}
        <span role="cell" class="cell name">
          <button class="name" data-row={i} tabIndex={tabIndex} onClick={() => set({ view: "graph", fn: String(key), q: "" })}>
            <Name keys={keys} k={key} via={via} />
          </button>
        </span>
      </div>
    );
  };
  return (
    <div class="wide" tabIndex={0} role="group" aria-label="Functions by state">
      <div class={`table states${narrow ? " narrow" : ""}`} role="table" aria-label="Functions by state" aria-rowcount={rows.length + 1} data-testid="state table" style={{ minWidth: `${FIRST + columns.length * (COLUMN + 6) + (narrow ? NARROW : NAME) + 28}px` }}>
        <div role="rowgroup">
          <div class="row head" role="row" aria-rowindex={1} style={layout}>
            {head(-1, state.sums === "total" ? "Total" : "Own")}
            {columns.map((s) => head(s, stateName(names[s])))}
            <span role="columnheader" class="cell heading">{state.by === "line" ? "Line" : "Function"}</span>
          </div>
        </div>
        <Rows count={rows.length} height={height} render={one} label="Functions" />
      </div>
    </div>
  );
}
