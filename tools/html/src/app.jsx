// SPDX-License-Identifier: Apache-2.0
// The page: title, tabs, what is above the views, the view, help.

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";

import { Filters, Legend, Menu, Search } from "./filters.jsx";
import { counted, isSamples, isTime, number, short, taken } from "./format.js";
import { CallersView, GraphView, TimeView } from "./graphs.jsx";
import { HotspotsView } from "./hotspots.jsx";
import { useHashState, useModel } from "./model.js";
import { Note } from "./parts.jsx";
import { usePrinting } from "./printing.js";
import { Range, Scope } from "./range.jsx";
import { RunView, summary } from "./run.jsx";
import { SourceView } from "./sources.jsx";
import { resolved } from "./state.js";
import { StatesView } from "./states.jsx";
import { TableView } from "./table.jsx";

const VIEWS = [
  ["graph", "Flame graph"],
  ["hot", "Hotspots"],
  ["time", "By time"],
  ["callers", "Callers"],
  ["table", "Functions"],
  ["source", "Source"],
  ["run", "Run"],
];
const STATES = ["states", "States"]; // where threads wait
const HELP = [
  ["/", "search, by a regular expression"],
  ["1 \u2026 7 (8)", "views"],
  ["\u2190 \u2191 \u2193 \u2192", "move in the graph; in time, move and (+ \u2212) zoom"],
  [", . \u2191 \u2193", "in time, with waits: the wait before, after, and of another thread"],
  ["Page \u2191 \u2193, Home, End", "scroll the graph; in a table, move"],
  ["Enter", "zoom to the chosen frame"],
  ["Esc", "back: from help, search, zoom, choice"],
  ["?", "this help"],
  ["click", "zoom to a frame; the first row shows all again"],
  ["Ctrl + wheel, drag", "zoom and move in time"],
  ["drag in the bars", "choose a range of time for all views"],
];
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

// What to do about a profile without stacks, by what its account says.
function Empty({ profile }) {
  const of = (group) => profile.account.filter((a) => a.group === group).reduce((sum, a) => sum + a.value, 0);
  const [filtered, without, lost, asked] = ["left out", "without", "lost", "asked"].map(of);
  const clock = isSamples(profile) || isTime(profile);
  let why = `While it was recorded, no profiled thread had ${counted(profile)} in Python code.`;
  if (clock)
    why =
      asked > 0 || without > 0
        ? "The profiled processes used CPU time, but no sample of it has a stack of Python functions."
        : "While it was recorded, no profiled thread ran Python code: a program that waits takes no CPU time and is not sampled.";
  return (
    <Note title={clock ? "No sample has Python frames" : `No ${counted(profile)} with Python frames`}>
      {filtered > 0 ? (
        <p>
          The filters of this report let none of {number(filtered)} {taken(profile)} pass. Make it again with fewer of them, or correct them:{" "}
          <code>pybpf report FILE</code> without options lists the functions that there are.
        </p>
      ) : (
        <>
          <p>
            There is nothing to draw.{" "}
            {why}
          </p>
          <p>What to do:</p>
          <ul>
            <li>
              Record while the program works, or for longer
              {clock && (
                <>
                  , or at a higher rate: <code>pybpf -p PID -d 60 -F 999 -o report.html</code>
                </>
              )}
            </li>
            <li>
              If its children do the work, profile them too: <code>--children</code>. <code>pybpf ps</code> lists the Python processes.
            </li>
            {lost > 0 && <li>{number(lost)} {taken(profile)} were lost; the account below says why.</li>}
            {without > 0 && <li>{number(without)} {taken(profile)} have no Python frames; the account below says where they were taken.</li>}
            <li>
              <code>pybpf doctor</code> tries the sampler on this machine.
            </li>
          </ul>
        </>
      )}
      {profile.account.some((a) => a.value) && <p>What became of the {taken(profile)}:</p>}
    </Note>
  );
}

const SHOWN = { graph: GraphView, hot: HotspotsView, time: TimeView, callers: CallersView, table: TableView, states: StatesView, source: SourceView, run: RunView };

export function App({ profile }) {
  const [state, set] = useHashState(profile);
  const systemDark = useSystemDark();
  const printing = usePrinting();
  const dark = !printing && (state.theme ? state.theme === "dark" : systemDark);
  const [help, setHelp] = useState(false);
  const box = useRef();
  const keys = useRef();
  const tabs = useRef();
  const dialog = useRef();
  useEffect(() => dialog.current?.focus(), [help]);
  const model = useModel(profile, resolved(state, profile), set, dark, printing);
  const { what, words, lost } = useMemo(() => summary(profile), [profile]);
  const views = useMemo(() => VIEWS.flatMap((one) => (profile.waits && one[0] === "table" ? [one, STATES] : [one])), [profile]);
  const filters = profile.processes.length > 1 || profile.threads.length > 1;
  useLayoutEffect(() => {
    document.documentElement.dataset.theme = dark ? "dark" : "light";
  }, [dark]);
  useEffect(() => {
    document.title = `${short(what, 160)} \u2013 pybpf`;
  }, [what]);
  useEffect(() => {
    const press = (e) => {
      if (e.ctrlKey || e.metaKey || e.altKey || e.defaultPrevented) return;
      const typing = e.target.closest?.("input, select, textarea");
      if (e.key === "Escape" && help) setHelp(false);
      else if (typing) {
        if (e.key !== "Escape" || e.target !== box.current) return;
        if (state.q) set({ q: "" });
        else box.current.blur();
      } else if (e.key === "/") box.current?.focus();
      else if (e.key === "?") setHelp(!help);
      else if (profile.empty) return;
      else if (/^[1-8]$/.test(e.key) && views[e.key - 1]) set({ view: views[e.key - 1][0] });
      else if (["Enter", " "].includes(e.key) && e.target.closest?.("button")) return;
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
  // The tabs' own keys, of which one only is a stop of the tabulator.
  const turn = (e) => {
    const at = views.findIndex(([key]) => key === view);
    const last = views.length - 1;
    const to = { ArrowRight: at === last ? 0 : at + 1, ArrowLeft: at ? at - 1 : last, Home: 0, End: last }[e.key];
    if (to === undefined) return;
    e.preventDefault();
    set({ view: views[to][0] });
    tabs.current.children[to].focus();
  };
  const View = SHOWN[view];
  useEffect(() => tabs.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest", inline: "nearest" }), [view]);
  keys.current = null;
  return (
    <>
      <header>
        <div class="title">
          <h1 title={short(what, 1000)}>{short(what, 160)}</h1>
          <p data-testid="summary">
            {words.map(([word, title]) => (
              <span key={word} title={title}>
                {word}
              </span>
            ))}
            {lost !== undefined && <span class={lost ? "lost" : ""}>{lost ? `${number(lost)} ${taken(profile, lost)} lost` : "none lost"}</span>}
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
          <nav aria-label="Views">
            <div class="tabs" role="tablist" aria-label="Views" ref={tabs} onKeyDown={turn}>
              {views.map(([key, text], i) => (
                <button key={key} id={`tab-${key}`} role="tab" aria-selected={key === view} aria-controls="view" tabIndex={key === view ? 0 : -1} onClick={() => set({ view: key })} title={`${text} (${i + 1})`}>
                  {text}
                </button>
              ))}
            </div>
          </nav>
          <section aria-label="Filters">
            <div class="tools" hidden={["hot", "source", "run"].includes(view) && !filters}>
              {!["source", "run", "hot"].includes(view) && <Search model={model} box={box} />}
              <Filters model={model} />
              {!["source", "run", "hot"].includes(view) && <Menu model={model} />}
            </div>
            {profile.timed && <Range model={model} />}
            <Scope model={model} />
            {["graph", "callers", "time"].includes(view) && <Legend model={model} />}
          </section>
        </>
      )}
      <main data-view={view}>
        <div id="view" class="panel" role={profile.empty ? undefined : "tabpanel"} aria-labelledby={profile.empty ? undefined : `tab-${view}`}>
          <View model={model} keys={keys} box={box} />
        </div>
      </main>
      {help && (
        <div class="cover" onClick={() => setHelp(false)}>
          <div class="help" role="dialog" aria-modal="true" aria-label="Help" ref={dialog} tabIndex={-1}>
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
