// SPDX-License-Identifier: Apache-2.0
// The page: title, views, filters, search; what the views share is computed here, and only when it changes.

import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";

import { amount, percent } from "./format.js";
import { CallersView, GraphView, TimeView } from "./graphs.jsx";
import { modules } from "./look.js";
import { Choice, Note } from "./parts.jsx";
import { RunView, summary } from "./run.jsx";
import { SourceView } from "./sources.jsx";
import { changed, readHash, remember, resolved, sane } from "./state.js";
import { TableView } from "./table.jsx";
import { matched, mergedTree, selfOf, sums } from "./tree.js";

const VIEWS = [
  ["graph", "Flame graph"],
  ["time", "By time"],
  ["callers", "Callers"],
  ["table", "Functions"],
  ["source", "Source"],
  ["run", "Run"],
];
const HELP = [
  ["/", "search by a regular expression"],
  ["1 \u2026 6", "views"],
  ["\u2190 \u2191 \u2193 \u2192", "move in the graph; in time, move and (+ \u2212) zoom"],
  ["Enter", "zoom to the chosen frame"],
  ["Esc", "back: from help, search, zoom, choice"],
  ["?", "this help"],
  ["click", "zoom to a frame; the first row shows all again"],
  ["Ctrl + wheel, drag", "zoom and move in time"],
];
const SEARCH_MS = 120; // of silence after the last letter

function useSystemDark() {
  const query = useMemo(() => matchMedia("(prefers-color-scheme: dark)"), []);
  const [dark, setDark] = useState(query.matches);
  useEffect(() => {
    const tell = () => setDark(query.matches);
    query.addEventListener("change", tell);
    return () => query.removeEventListener("change", tell);
  }, []);
  return dark;
}

function useHashState(profile) {
  const [state, setState] = useState(() => sane(readHash(location.hash), profile));
  useEffect(() => {
    const read = () => setState(sane(readHash(location.hash), profile));
    addEventListener("hashchange", read);
    addEventListener("popstate", read);
    return () => {
      removeEventListener("hashchange", read);
      removeEventListener("popstate", read);
    };
  }, []);
  const current = useRef();
  current.current = state;
  const set = useCallback((change) => {
    const next = changed(current.current, change);
    current.current = next;
    remember(next, change);
    setState(next);
  }, []);
  return [state, set];
}

// Lower case finds both cases.
function compile(q) {
  try {
    return { expression: q && new RegExp(q, q === q.toLowerCase() ? "i" : "") };
  } catch (error) {
    return { error: String(error.message) };
  }
}

function useModel(profile, state, set, dark) {
  const by = state.by === "line" ? profile.lines : profile.functions;
  const roots = useMemo(() => (state.roots ? state.roots.split(",").filter((r) => r !== "-") : profile.roots), [profile, state.roots]);
  const passes = useMemo(() => {
    const { processes, containers, sampleProcess, sampleThread } = profile;
    const container = state.container === "" ? null : containers[Number(state.container)];
    const process = state.process === "" ? -1 : Number(state.process);
    const thread = state.thread === "" ? -1 : Number(state.thread);
    return (i) =>
      (process < 0 || sampleProcess[i] === process) &&
      (thread < 0 || sampleThread[i] === thread) &&
      (container === null || processes[sampleProcess[i]].container === container);
  }, [profile, state.container, state.process, state.thread]);
  const arrangement = useMemo(() => {
    const scale = profile.totalBefore ? profile.total / profile.totalBefore || 1 : 1;
    const sizes = { after: (value) => value, before: (_, was) => was * scale, both: (value, was) => (value + was * scale) / 2 };
    return { size: sizes[state.width], rank: null };
  }, [profile, state.width]);
  const rank = useMemo(() => {
    if (state.order !== "name") return null;
    const order = Array.from({ length: by.count }, (_, k) => [by.text(k), k]).sort((x, y) => (x[0] < y[0] ? -1 : x[0] > y[0] ? 1 : x[1] - y[1]));
    const ranks = new Int32Array(by.count);
    order.forEach(([, k], i) => (ranks[k] = i));
    return ranks;
  }, [by, state.order]);
  const settings = useMemo(() => ({ ...arrangement, rank, passes }), [arrangement, rank, passes]);
  const tree = useMemo(() => mergedTree(profile, { ...settings, keys: by, roots }), [profile, settings, by, roots]);
  const bareTree = useMemo(
    () => (state.view !== "time" ? null : roots.length ? mergedTree(profile, { ...settings, keys: by, roots: [] }) : tree),
    [tree, state.view === "time"],
  );
  const lineTree = useMemo(
    () => (state.view !== "source" ? null : mergedTree(profile, { ...settings, rank: null, keys: profile.places, roots: [] })),
    [profile, settings, state.view === "source"],
  );
  const lineSums = useMemo(() => lineTree && sums(lineTree), [lineTree]);
  const totals = useMemo(() => sums(tree), [tree]);
  const hues = useMemo(() => modules(by, selfOf(profile, by)), [profile, by]);
  const hueOf = useMemo(() => new Map(hues.map((m) => [m.name, m.hue])), [hues]);

  const { expression, error } = useMemo(() => compile(state.q), [state.q]);
  const found = useMemo(() => {
    if (!expression && (state.fn === "" || state.view !== "graph")) return null;
    const flags = new Uint8Array(by.count);
    if (expression) for (let k = 0; k < by.count; k++) flags[k] = expression.test(by.text(k)) ? 1 : 0;
    else flags[Number(state.fn)] = 1;
    return flags;
  }, [by, expression, state.fn, state.view === "graph"]);
  const foundLabels = (t) => t.labels.map(({ text }) => !!expression && expression.test(text));
  const share = useMemo(() => found && matched(tree, found, foundLabels(tree)), [tree, found]);
  return { profile, state, set, dark, tree, bareTree, lineTree, lineSums, sums: totals, modules: hues, hues: hueOf, arrangement: settings, found, foundLabels, matched: share, error };
}

function Filters({ model }) {
  const { profile, state, set } = model;
  const { containers, processes, threads } = profile;
  const indexed = (list, label) => [["", "all"], ...list.map((item, i) => [String(i), label(item)])];
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
        <Choice label="Process" value={state.process} options={[["", "all"], ...shownProcesses.map(([p, i]) => [String(i), p.label])]} onChange={(process) => set({ process, thread: "" })} />
      )}
      {threads.length > 1 && (
        <Choice label="Thread" value={state.thread} options={[["", "all"], ...shownThreads.map(([t, i]) => [String(i), t.label])]} onChange={(thread) => set({ thread })} />
      )}
      {state.view === "graph" && rootChoices.length > 1 && <Choice label="Rows" value={roots} options={rootChoices} onChange={(r) => set({ roots: r })} />}
      {state.view !== "source" && state.view !== "run" && (
        <Choice label="Frame" value={state.by} options={[["function", "function"], ["line", "line"]]} onChange={(by) => set({ by })} />
      )}
      {graph && <Choice label="Order" value={state.order} options={[["heavy", "left-heavy"], ["name", "by name"]]} onChange={(order) => set({ order })} />}
      {graph && (state.view === "graph" || state.fn === "") && (
        <Choice label="Shape" value={state.shape} options={[["icicle", "icicle"], ["flame", "flame"]]} onChange={(shape) => set({ shape })} />
      )}
      {(graph || state.view === "time") && (
        <Choice
          label="Colour"
          value={state.color}
          options={[["module", "module"], ["kind", "kind"], ...(profile.diff ? [["change", "change"]] : [])]}
          onChange={(color) => set({ color })}
        />
      )}
      {graph && profile.diff && (
        <Choice label="Width" value={state.width} options={[["both", "both"], ["before", "before"], ["after", "after"]]} onChange={(width) => set({ width })} />
      )}
    </>
  );
}

function Search({ model, box }) {
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
      <input ref={box} type="search" value={text} onInput={type} placeholder="Search by regular expression" aria-label="Search by a regular expression" spellcheck={false} autocomplete="off" />
      <output data-testid="matched" class={error ? "error" : ""}>
        {error ? "no regular expression" : found && (
          <>
            {tree.was && `before ${percent(tree.was[0] ? share.was / tree.was[0] : 0)}, now `}
            <b>{percent(all ? share.total / all : 0)}</b> of {what}, {amount(profile, share.total)}
          </>
        )}
      </output>
    </div>
  );
}

function Legend({ model }) {
  const { state, profile, modules: list, set } = model;
  const escape = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  if (state.fn !== "" && state.view === "graph" && !state.q) {
    const k = Number(state.fn);
    return (
      <div class="legend">
        <button class="chip on" onClick={() => set({ fn: "" })}>
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
        <span class="chip grey">within the noise</span>
      </div>
    );
  }
  if (state.color !== "module") return null;
  return (
    <div class="legend">
      {list.slice(0, 12).filter((m) => m.value).map((m) => (
        <button key={m.name} class="chip" style={{ "--hue": m.hue }} onClick={() => set({ q: m.name === "<frozen>" ? "<frozen " : `[(/]${escape(m.name)}[/:)]` })} title="Search for this module">
          {m.name} <small>{percent(m.value / (profile.total || 1))}</small>
        </button>
      ))}
    </div>
  );
}

function Empty({ profile }) {
  return (
    <Note title="No sample has Python frames">
      <p>The profile is whole, but there is nothing to draw: while it was recorded, none of the profiled threads ran Python code.</p>
      <p>A program that waits takes no CPU time and is not sampled. Record for longer (-d), at a higher rate (-F), or while it works.</p>
      {profile.account.some((a) => a.value) && <p>What became of the samples:</p>}
    </Note>
  );
}

const SHOWN = { graph: GraphView, time: TimeView, callers: CallersView, table: TableView, source: SourceView, run: RunView };

export function App({ profile }) {
  const [state, set] = useHashState(profile);
  const systemDark = useSystemDark();
  const dark = state.theme ? state.theme === "dark" : systemDark;
  const [help, setHelp] = useState(false);
  const [options, setOptions] = useState(false);
  const box = useRef();
  const keys = useRef();
  const tabs = useRef();
  const model = useModel(profile, resolved(state, profile), set, dark);
  const { what, words, lost } = useMemo(() => summary(profile), [profile]);
  useEffect(() => {
    document.documentElement.dataset.theme = dark ? "dark" : "light";
  }, [dark]);
  useEffect(() => {
    document.title = `${what} \u2013 pybpf`;
  }, [what]);
  useEffect(() => {
    const press = (e) => {
      if (e.ctrlKey || e.metaKey || e.altKey) return;
      const typing = e.target.closest?.("input, select, textarea");
      if (e.key === "Escape" && help) setHelp(false);
      else if (typing) {
        if (e.key !== "Escape" || e.target !== box.current) return;
        if (state.q) set({ q: "" });
        else box.current.blur();
      } else if (e.key === "/") box.current?.focus();
      else if (e.key === "?") setHelp(!help);
      else if (/^[1-6]$/.test(e.key)) set({ view: VIEWS[e.key - 1][0] });
      else if (e.key === "Enter" && e.target.closest?.("button")) return;
      else if (keys.current?.(e)) {
        // The view took it.
      } else if (e.key === "Escape" && (state.q || state.fn)) set({ q: "", fn: "" });
      else return;
      e.preventDefault();
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  });
  const view = profile.empty ? "run" : state.view;
  const View = SHOWN[view];
  useEffect(() => tabs.current?.querySelector("[aria-selected=true]").scrollIntoView({ block: "nearest", inline: "nearest" }), [view]);
  keys.current = null;
  return (
    <>
      <header>
        <div class="title">
          <h1>{what}</h1>
          <p data-testid="summary">
            {words.map((word) => (
              <span key={word}>{word}</span>
            ))}
            {lost !== undefined && <span class={lost ? "lost" : ""}>{lost ? `${amount(profile, lost)} lost` : "none lost"}</span>}
          </p>
        </div>
        <button class="icon" onClick={() => set({ theme: dark ? "light" : "dark" })} aria-label={dark ? "Light theme" : "Dark theme"} title={dark ? "Light theme" : "Dark theme"}>
          {dark ? "\u2600" : "\u263e"}
        </button>
        <button class="icon" onClick={() => setHelp(!help)} aria-label="Help" title="Help (?)">
          ?
        </button>
      </header>
      {profile.empty ? (
        <Empty profile={profile} />
      ) : (
        <>
          <nav class="tabs" role="tablist" aria-label="Views" ref={tabs}>
            {VIEWS.map(([key, text], i) => (
              <button key={key} role="tab" aria-selected={key === view} onClick={() => set({ view: key })} title={`${text} (${i + 1})`}>
                {text}
              </button>
            ))}
          </nav>
          <div class="tools" hidden={view === "run"}>
            {view !== "source" && <Search model={model} box={box} />}
            <button class="more" aria-expanded={options} onClick={() => setOptions(!options)}>
              Options
            </button>
            <div class={`options${options ? " open" : ""}`}>
              <Filters model={model} />
            </div>
          </div>
          {["graph", "callers", "time"].includes(view) && <Legend model={model} />}
        </>
      )}
      <main data-view={view}>
        <View model={model} keys={keys} />
      </main>
      {help && (
        <div class="cover" onClick={() => setHelp(false)}>
          <div class="help" role="dialog" aria-label="Help">
            <h2>Keys</h2>
            <dl>
              {HELP.map(([key, text]) => (
                <div key={key}>
                  <dt>
                    <kbd>{key}</kbd>
                  </dt>
                  <dd>{text}</dd>
                </div>
              ))}
            </dl>
            <p>The address keeps what is shown: copy it to share the view.</p>
          </div>
        </div>
      )}
    </>
  );
}
