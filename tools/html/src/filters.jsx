// SPDX-License-Identifier: Apache-2.0
// What is above the views: filters and choices, the search, the legend.

import { useEffect, useRef, useState } from "preact/hooks";

import { amount, counted, escaped, percent, short } from "./format.js";
import { codeHue, stateHue, stateName } from "./look.js";
import { Choice } from "./parts.jsx";
import { CODES, KIND_NOTE } from "./profile.js";
import { statesOf } from "./tree.js";

const SEARCH_MS = 120; // of silence after the last letter
const CHOICE = 50; // letters of a choice

// What the address keeps to stand below the functions of each stack, in words.
const GROUPS = { container: "container", parents: "who started it", process: "process", thread: "thread" };
export const groupWords = (roots) => (roots === "-" ? "nothing" : roots.split(",").map((root) => GROUPS[root]).join(", then "));

// Whose samples are shown, and what a view has of its own: what is chosen most.
export function Filters({ model }) {
  const { profile, state, set } = model;
  const { containers, processes, threads } = profile;
  const shownProcesses = processes.map((p, i) => [p, i]).filter(([p]) => state.container === "" || p.container === containers[Number(state.container)]);
  const shownThreads = threads.map((t, i) => [t, i]).filter(([t]) => state.process === "" || t.process === Number(state.process));
  const labelled = (list) => [["", "all"], ...list.map(([item, i]) => [String(i), short(item.label, CHOICE)])];
  return (
    <>
      {containers.length > 1 && (
        <Choice
          label="Container"
          value={state.container}
          options={[["", "all"], ...containers.map((c, i) => [String(i), short(c || "[host]", CHOICE)])]}
          onChange={(container) => set({ container, process: "", thread: "" })}
        />
      )}
      {processes.length > 1 && <Choice label="Process" value={state.process} options={labelled(shownProcesses)} onChange={(process) => set({ process, thread: "" })} />}
      {threads.length > 1 && <Choice label="Thread" value={state.thread} options={labelled(shownThreads)} onChange={(thread) => set({ thread })} />}
      {state.view === "states" && (
        <Choice label="Time" value={state.sums} options={[["own", "in the function itself"], ["total", "with what it calls"]]} onChange={(sums) => set({ sums })} />
      )}
    </>
  );
}

// How the view is drawn.
function Drawn({ model }) {
  const { profile, state, set } = model;
  const { containers, processes } = profile;
  const rootNames = [containers.length > 1 && "container", processes.length > 1 && "process", !profile.anonymousThreads && "thread"].filter(Boolean);
  const rootChoices = ["-", ...rootNames];
  if (rootNames.includes("process") && rootNames.includes("thread")) rootChoices.push("process,thread");
  const roots = state.roots || profile.roots.join(",") || "-";
  if (!rootChoices.includes(roots)) rootChoices.push(roots);
  const graph = ["graph", "callers"].includes(state.view);
  return (
    <>
      {(graph || state.view === "time") && (
        <Choice
          label="Colours"
          value={state.color}
          options={[
            ["module", "by module"],
            ["kind", "by kind of code"],
            ...(profile.waits ? [["state", "what threads did"]] : []),
            ...(profile.diff ? [["change", "what changed"]] : []),
          ]}
          onChange={(color) => set({ color })}
        />
      )}
      {state.view === "graph" && rootChoices.length > 1 && (
        <Choice label="Group by" value={roots} options={rootChoices.map((r) => [r, groupWords(r)])} onChange={(r) => set({ roots: r })} />
      )}
      <Choice label="Detail" value={state.by} options={[["function", "functions"], ["line", "lines of code"]]} onChange={(by) => set({ by })} />
      {(graph || state.view === "time") && (
        <Choice label="Recursive calls" value={state.fold} options={[["", "each"], ["yes", "shown once"]]} onChange={(fold) => set({ fold })} />
      )}
      {graph && <Choice label="Order" value={state.order} options={[["heavy", "largest first"], ["name", "by name"]]} onChange={(order) => set({ order })} />}
      {graph && (state.view === "graph" || state.fn === "") && (
        <Choice label="Graph grows" value={state.shape} options={[["icicle", "down"], ["flame", "up"]]} onChange={(shape) => set({ shape })} />
      )}
      {graph && profile.diff && (
        <Choice label="Widths" value={state.width} options={[["both", "mean of both"], ["before", "before"], ["after", "after"]]} onChange={(width) => set({ width })} />
      )}
    </>
  );
}

// The menu of what is chosen less often. Escape, a press beside it and the focus elsewhere close it.
export function Menu({ model }) {
  const [open, setOpen] = useState(false);
  const menu = useRef();
  useEffect(() => {
    if (!open) return undefined;
    const beside = (e) => !menu.current.contains(e.target) && setOpen(false);
    addEventListener("pointerdown", beside);
    return () => removeEventListener("pointerdown", beside);
  }, [open]);
  const press = (e) => {
    if (e.key !== "Escape" || !open) return;
    e.stopPropagation();
    setOpen(false);
    menu.current.querySelector("button").focus();
  };
  return (
    <div class="menu" ref={menu} onKeyDown={press} onFocusOut={(e) => e.relatedTarget && !menu.current.contains(e.relatedTarget) && setOpen(false)}>
      <button class="more" aria-expanded={open} onClick={() => setOpen(!open)}>
        More options
      </button>
      <div class="options" hidden={!open} role="group" aria-label="More options" data-testid="options">
        <Drawn model={model} />
      </div>
    </div>
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
  const what = `${all === profile.total ? "all" : "the filtered"} ${counted(profile)}`;
  return (
    <div class="search" role="search">
      <input ref={box} type="search" value={text} onInput={type} placeholder="Search functions and files" aria-label="Search functions and files by a regular expression" aria-invalid={!!error} aria-describedby="matched" spellcheck={false} autocomplete="off" />
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

// What a kind of code took itself.
function Codes({ model: { profile, tree, sums } }) {
  const { kind, code, count } = tree.keys;
  const self = new Map();
  for (let k = 0; k < count; k++) if (sums.total[k] && kind[k] !== KIND_NOTE) self.set(code[k], (self.get(code[k]) ?? 0) + sums.self[k]);
  return (
    <div class="legend" data-testid="codes" title={`Share of the ${counted(profile)} shown, in the functions themselves`}>
      {[...self].sort(([x], [y]) => x - y).map(([c, value]) => (
        <span key={c} class="chip" style={{ "--hue": codeHue(c) }}>
          {CODES[c]} <small>{percent(value / (tree.whole.total || 1))}</small>
        </span>
      ))}
    </div>
  );
}

export function Legend({ model }) {
  const { state, profile, modules: list, set } = model;
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
      <div class="legend" data-testid="states" title="A frame has the colours of the states that its time is in, each as wide as its share, the largest first">
        {shown.map(({ name, value }) => (
          <button key={name} class={`chip${stateHue(name) === null ? " calm" : ""}`} style={{ "--hue": stateHue(name) }} onClick={() => set({ q: name ? `^\\[${escaped(name)}[\\]:]` : "" })} title={name ? "Search for these waits" : "Not a wait: the function itself"}>
            {stateName(name)} <small>{percent(value / all)}</small>
          </button>
        ))}
      </div>
    );
  }
  if (state.color === "kind") return <Codes model={model} />;
  return (
    <div class="legend">
      {list.slice(0, 12).filter((m) => m.value).map((m) => (
        <button key={m.name} class="chip" style={{ "--hue": model.hues.get(m.name) }} onClick={() => set({ q: m.name === "<frozen>" ? "<frozen " : `[(/]${escaped(m.name)}[/:)]` })} title="Search for this module">
          {short(m.name, CHOICE)} <small>{percent(m.value / (model.tree.whole.total || 1))}</small>
        </button>
      ))}
    </div>
  );
}
