// SPDX-License-Identifier: Apache-2.0
// What is shown, as the address's part after # keeps it: a link restores the view.

const DEFAULTS = {
  view: "graph",
  shape: "icicle", // which way the graph grows
  order: "heavy", // left-heavy, or by name
  color: "", // "": by change where two are compared, by state where threads wait, else by module
  by: "function", // what one frame is
  idle: "", // hotspots have each wait for work
  fold: "", // repeats of a chain of calls are shown once
  roots: "", // container, parents, process, thread below the frames; "" as the profile has them, "-" none
  width: "both", // what a comparison's frames are as wide as
  q: "", // regular expression that is searched for
  container: "", // filters: "" all, else an index
  process: "",
  thread: "",
  zoom: "", // group.stack.depth of a node; see tree.js
  fn: "", // key of the chosen function
  file: "", // whose source is shown
  line: "", // of that file, chosen
  text: "", // regular expression that is searched for in sources
  column: "", // by which the table of states is sorted: the state's name; "": all its time
  sums: "own", // what that table has: a function's own time, or with what it calls
  sort: "", // column of the table; "": by change, else by self
  t: "", // the range of time whose samples are shown: from-to, microseconds
  theme: "", // light or dark; "" as the system has it
};
const CHOICES = {
  view: ["graph", "hot", "time", "callers", "table", "states", "source", "run"],
  shape: ["icicle", "flame"],
  order: ["heavy", "name"],
  color: ["module", "kind", "change", "state"],
  by: ["function", "line"],
  idle: ["", "yes"],
  fold: ["", "yes"],
  sums: ["own", "total"],
  width: ["both", "before", "after"],
  sort: ["self", "total", "change", "name"],
  theme: ["light", "dark"],
};
// These two name things of one key space, or of one tree.
const LOST_WITH = {
  by: ["fn", "zoom"],
  file: ["line"],
  ...Object.fromEntries(["roots", "fn", "view", "container", "process", "thread", "fold", "t"].map((key) => [key, ["zoom"]])),
};
// What makes a step of the browser's history; typing does not.
const STEPS = ["view", "zoom", "fn", "file", "line"];

export function readHash(hash) {
  const state = { ...DEFAULTS };
  for (const [key, value] of new URLSearchParams(hash.replace(/^#/, ""))) if (key in DEFAULTS) state[key] = value;
  return state;
}

// What is left to the profile, decided.
export function resolved(state, profile) {
  const usual = profile.diff ? "change" : profile.waits ? "state" : "module";
  return { ...state, color: state.color || usual, sort: state.sort || (profile.diff ? "change" : "self") };
}

export function writeHash(state) {
  const words = new URLSearchParams();
  for (const [key, usual] of Object.entries(DEFAULTS)) if (state[key] !== usual) words.set(key, state[key]);
  return words.toString();
}

// A link can say anything: what the profile does not have is left out.
export function sane(state, profile) {
  state = { ...state };
  for (const [key, choices] of Object.entries(CHOICES)) if (!choices.includes(state[key])) state[key] = DEFAULTS[key];
  for (const key of ["color", "sort"]) if (state[key] === "change" && !profile.diff) state[key] = DEFAULTS[key];
  if (!profile.waits && state.color === "state") state.color = DEFAULTS.color;
  if (!profile.waits && state.view === "states") state.view = DEFAULTS.view;
  const index = (text, count) => (/^\d+$/.test(text) && Number(text) < count ? text : "");
  const keys = state.by === "line" ? profile.lines : profile.functions;
  const [from, to] = state.t.split("-").map(Number);
  const roots = state.roots.split(",").filter((root) => ["-", "container", "parents", "process", "thread"].includes(root));
  return {
    ...state,
    roots: roots.join(","),
    container: index(state.container, profile.containers.length),
    process: index(state.process, profile.processes.length),
    thread: index(state.thread, profile.threads.length),
    zoom: /^\d+\.\d+\.\d+$/.test(state.zoom) ? state.zoom : "",
    fn: index(state.fn, keys.count),
    column: profile.functions.state.includes(state.column) || state.column === "on CPU" ? state.column : "",
    line: /^\d{1,9}$/.test(state.line) ? state.line : "",
    t: profile.timed && from >= 0 && to > from && Number.isFinite(to) ? state.t : "",
  };
}

// The next state; what a change makes meaningless goes back to its default.
export function changed(state, change) {
  const next = { ...state };
  for (const key of Object.keys(change)) if (change[key] !== state[key]) for (const lost of LOST_WITH[key] ?? []) next[lost] = DEFAULTS[lost];
  return Object.assign(next, change);
}

export function remember(state, change) {
  const hash = writeHash(state);
  const address = hash ? "#" + hash : location.pathname + location.search;
  if (STEPS.some((key) => key in change)) history.pushState(null, "", address);
  else history.replaceState(null, "", address);
}
