// SPDX-License-Identifier: Apache-2.0
// What is above the views: filters and choices, the search, the legend.

import { useEffect, useRef, useState } from "preact/hooks";

import { amount, percent, short } from "./format.js";
import { stateHue, stateName } from "./look.js";
import { Choice } from "./parts.jsx";
import { statesOf } from "./tree.js";

const SEARCH_MS = 120; // of silence after the last letter
const CHOICE = 50; // letters of a choice

export function Filters({ model }) {
  const { profile, state, set } = model;
  const { containers, processes, threads } = profile;
  const indexed = (list, label) => [["", "all"], ...list.map((item, i) => [String(i), short(label(item), CHOICE)])];
  const shownProcesses = processes.map((p, i) => [p, i]).filter(([p]) => state.container === "" || p.container === containers[Number(state.container)]);
  const shownThreads = threads.map((t, i) => [t, i]).filter(([t]) => state.process === "" || t.process === Number(state.process));
  const rootNames = [containers.length > 1 && "container", processes.length > 1 && "process", !profile.anonymousThreads && "thread"].filter(Boolean);
  const rootChoices = [["-", "functions"], ...rootNames.map((r) => [r, `${r}, functions`])];
  if (rootNames.includes("process") && rootNames.includes("thread")) rootChoices.push(["process,thread", "process, thread, functions"]);
  const roots = state.roots || profile.roots.join(",") || "-";
  if (!rootChoices.some(([key]) => key === roots)) rootChoices.push([roots, roots.split(",").join(", ") + ", functions"]);
  const graph = ["graph", "callers"].includes(state.view);
  return (
    <>
      {containers.length > 1 && (
        <Choice label="Container" value={state.container} options={indexed(containers, (c) => c || "[host]")} onChange={(container) => set({ container, process: "", thread: "" })} />
      )}
      {processes.length > 1 && (
        <Choice label="Process" value={state.process} options={[["", "all"], ...shownProcesses.map(([p, i]) => [String(i), short(p.label, CHOICE)])]} onChange={(process) => set({ process, thread: "" })} />
      )}
      {threads.length > 1 && (
        <Choice label="Thread" value={state.thread} options={[["", "all"], ...shownThreads.map(([t, i]) => [String(i), short(t.label, CHOICE)])]} onChange={(thread) => set({ thread })} />
      )}
      {state.view === "graph" && rootChoices.length > 1 && <Choice label="Rows" value={roots} options={rootChoices} onChange={(r) => set({ roots: r })} />}
      {!["source", "run", "hot"].includes(state.view) && (
        <Choice label="Frame" value={state.by} options={[["function", "function"], ["line", "line"]]} onChange={(by) => set({ by })} />
      )}
      {["graph", "callers", "time"].includes(state.view) && (
        <Choice label="Recursion" value={state.fold} options={[["", "as it was"], ["yes", "folded"]]} onChange={(fold) => set({ fold })} />
      )}
      {graph && <Choice label="Order" value={state.order} options={[["heavy", "left-heavy"], ["name", "by name"]]} onChange={(order) => set({ order })} />}
      {graph && (state.view === "graph" || state.fn === "") && (
        <Choice label="Shape" value={state.shape} options={[["icicle", "icicle"], ["flame", "flame"]]} onChange={(shape) => set({ shape })} />
      )}
      {(graph || state.view === "time") && (
        <Choice
          label="Colour"
          value={state.color}
          options={[["module", "module"], ["kind", "kind"], ...(profile.waits ? [["state", "state"]] : []), ...(profile.diff ? [["change", "change"]] : [])]}
          onChange={(color) => set({ color })}
        />
      )}
      {state.view === "states" && (
        <Choice label="Time" value={state.sums} options={[["own", "own"], ["total", "with what it calls"]]} onChange={(sums) => set({ sums })} />
      )}
      {graph && profile.diff && (
        <Choice label="Width" value={state.width} options={[["both", "both"], ["before", "before"], ["after", "after"]]} onChange={(width) => set({ width })} />
      )}
    </>
  );
}

export function Search({ model, box }) {
  const { profile, state, set, tree, found, matched: share, error } = model;
  const [text, setText] = useState(state.q);
  const timer = useRef();
  useEffect(() => setText(state.q), [state.q]);
  const type = (e) => {
    const q = e.currentTarget.value;
    setText(q);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => set({ q }), SEARCH_MS);
  };
  const all = tree.total[0];
  const what = all === profile.total ? "all samples" : "the filtered samples";
  return (
    <div class="search" role="search">
      <input ref={box} type="search" value={text} onInput={type} placeholder="Search by regular expression" aria-label="Search by a regular expression" aria-invalid={!!error} aria-describedby="matched" spellcheck={false} autocomplete="off" />
      <output id="matched" data-testid="matched" class={error ? "error" : ""}>
        {error ? error : found && (
          <>
            {tree.was && `before ${percent(tree.was[0] ? share.was / tree.was[0] : 0)}, now `}
            <b>{percent(all ? share.total / all : 0)}</b> of {what}, {amount(profile, share.total)}
          </>
        )}
      </output>
    </div>
  );
}

export function Legend({ model }) {
  const { state, profile, modules: list, set } = model;
  const escape = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  if (state.fn !== "" && state.view === "graph" && !state.q) {
    const k = Number(state.fn);
    return (
      <div class="legend">
        <button class="chip on" onClick={() => set({ fn: "" })} title="Stop marking this function">
          {model.tree.keys.label(k)} {"\u2715"}
        </button>
      </div>
    );
  }
  if (state.color === "change") {
    return (
      <div class="legend">
        <span class="chip" style={{ "--hue": 25 }}>grew</span>
        <span class="chip" style={{ "--hue": 255 }}>shrank</span>
        <span class="chip grey">no change seen</span>
      </div>
    );
  }
  const strips = state.view === "time" && profile.intervals;
  if ((state.color === "state" || strips) && !(state.view === "callers" && state.fn !== "")) {
    const { names, of } = statesOf(profile, model.tree);
    const all = model.tree.total[0] || 1;
    const shown = names.map((name, s) => ({ name, value: of[s] })).filter(({ value }) => value).sort((x, y) => y.value - x.value);
    return (
      <div class="legend" data-testid="states" title="A frame has the colour of the state that most of its time is in">
        {shown.map(({ name, value }) => (
          <button key={name} class={`chip${stateHue(name) === null ? " calm" : ""}`} style={{ "--hue": stateHue(name) }} onClick={() => set({ q: name ? `^\\[${escape(name)}[\\]:]` : "" })} title={name ? "Search for these waits" : "Not a wait: the function itself"}>
            {stateName(name)} <small>{percent(value / all)}</small>
          </button>
        ))}
      </div>
    );
  }
  if (state.color !== "module" && state.color !== "state") return null;
  return (
    <div class="legend">
      {list.slice(0, 12).filter((m) => m.value).map((m) => (
        <button key={m.name} class="chip" style={{ "--hue": model.hues.get(m.name) }} onClick={() => set({ q: m.name === "<frozen>" ? "<frozen " : `[(/]${escape(m.name)}[/:)]` })} title="Search for this module">
          {short(m.name, CHOICE)} <small>{percent(m.value / (model.tree.whole.total || 1))}</small>
        </button>
      ))}
    </div>
  );
}
