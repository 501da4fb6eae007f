// SPDX-License-Identifier: Apache-2.0
// What the views share, computed only when what it is made of changes.

import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";

import { escaped, short } from "./format.js";
import { huesOf, modules } from "./look.js";
import { changed, readHash, remember, sane } from "./state.js";
import { matched, mergedTree, selfOf, sums } from "./tree.js";

export function useHashState(profile) {
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

// What is wrong with a regular expression: the browser's words without the expression itself.
function explained(message, q) {
  const words = message.split(": ").pop().replace(/\.?$/, "");
  return `Not a regular expression: ${words.charAt(0).toLowerCase()}${words.slice(1)}. To find these characters themselves: ${short(escaped(q), 40)}`;
}

// Lower case finds both cases.
export function compile(q) {
  try {
    return { expression: q && new RegExp(q, q === q.toLowerCase() ? "i" : "") };
  } catch (error) {
    return { error: explained(String(error.message), q) };
  }
}

export function useModel(profile, state, set, dark, printing) {
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
  const range = useMemo(() => (state.t ? state.t.split("-").map(Number) : null), [state.t]);
  const { values, waits } = useMemo(() => (range ? profile.within(...range) : { values: profile.sampleValue, waits: profile.sampleWaits }), [profile, range]);
  const arrangement = useMemo(() => {
    const scale = (profile.diff && profile.diff.before_unit / profile.diff.after_unit) || 1;
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
  const settings = useMemo(() => ({ ...arrangement, rank, passes, values, waits, fold: !!state.fold }), [arrangement, rank, passes, values, state.fold]);
  const tree = useMemo(() => mergedTree(profile, { ...settings, keys: by, roots }), [profile, settings, by, roots]);
  // The time line shows what is beside the range, too.
  const bareTree = useMemo(
    () => (state.view !== "time" ? null : mergedTree(profile, { ...settings, keys: by, roots: [], keepEmpty: true })),
    [tree, state.view === "time"],
  );
  const lineTree = useMemo(
    () => (state.view !== "source" ? null : mergedTree(profile, { ...settings, rank: null, fold: false, keys: profile.places, roots: [] })),
    [profile, settings, state.view === "source"],
  );
  const lineSums = useMemo(() => lineTree && sums(lineTree), [lineTree]);
  const spotSums = useMemo(
    () => lineTree && profile.spots && sums(mergedTree(profile, { ...settings, rank: null, fold: false, keys: profile.spots, roots: [] })),
    [lineTree],
  );
  const totals = useMemo(() => sums(tree), [tree]);
  const hues = useMemo(() => huesOf(modules(by, selfOf(profile, by))), [profile, by]);
  const shownModules = useMemo(() => modules(by, totals.self), [by, totals]);

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
  return {
    profile, state, set, dark, printing, tree, bareTree, lineTree, lineSums, spotSums, sums: totals, modules: shownModules, hues,
    arrangement: settings, passes, values, waits, range, found, foundLabels, matched: share, error,
  };
}
