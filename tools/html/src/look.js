// SPDX-License-Identifier: Apache-2.0
// Colours. Frames have that of their module or kind, or of what a comparison says of them; a search leaves its matches
// bright.

import { short } from "./format.js";
import { KIND_NOTE, moduleOf } from "./profile.js";
import { sharesOf, statesOf } from "./tree.js";

// Hues (OKLCH, where those of one lightness look so) of the modules with most samples, far enough apart from one another; the others get one by their name.
const HUES = [60, 245, 150, 305, 15, 195, 95, 275, 125, 340, 40, 220];
// Hues of states, which waits have; null: grey. PYBPF_STATES of bpf/pybpf_wait.h.
const STATE_HUES = {
  "on CPU": 150, "waiting for a CPU": 95, GIL: 15, lock: 45, disk: 305, network: 250, pipe: 195, poll: 222, child: 340, sleep: null,
  stopped: 120, other: 278,
};
const CODE_HUES = [245, 60, 150, 305, 15]; // of CODES; notes are grey
const SHADES = 16; // of red and of blue
const ROOT_LABEL = 120; // letters of a process's or a thread's

function hash(text) {
  let h = 2166136261; // FNV-1a
  for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 16777619);
  return h >>> 0;
}

const THEMES = {
  light: {
    ground: "#ffffff", grid: "#ececea", faint: "#5c5c58", outline: "#111111",
    ink: "#1d1d1b", muted: "#e6e5e1", mutedInk: "#5b5a55", root: "#d5d9df", note: "#dddbd5", even: "#dcdcd8",
    found: "#c9176e", foundInk: "#ffffff", used: "#7d8fa8",
    tint: (hue, shift) => `oklch(${0.835 + shift / 80} 0.085 ${hue})`,
    shade: (hue, part) => `hsl(${hue} ${Math.round(35 + 50 * part)}% ${Math.round(86 - 26 * part)}%)`,
  },
  dark: {
    ground: "#17181a", grid: "#26282b", faint: "#a3a6ab", outline: "#ffffff",
    ink: "#f2f2f0", muted: "#2b2d31", mutedInk: "#a6a9af", root: "#3c424c", note: "#3a3a38", even: "#3b3c3f",
    found: "#c9176e", foundInk: "#ffffff", used: "#8fa3bf",
    tint: (hue, shift) => `oklch(${0.43 + shift / 100} 0.075 ${hue})`,
    shade: (hue, part) => `hsl(${hue} ${Math.round(25 + 45 * part)}% ${Math.round(27 + 17 * part)}%)`,
  },
};

export const theme = (dark) => THEMES[dark ? "dark" : "light"];

// {name, value} of each module, those with most samples of their own first.
export function modules(keys, self) {
  const values = new Map();
  for (let k = 0; k < keys.count; k++) {
    if (!keys.file[k]) continue;
    const name = moduleOf(keys.file[k]);
    values.set(name, (values.get(name) ?? 0) + self[k]);
  }
  return [...values].map(([name, value]) => ({ name, value })).sort((x, y) => y.value - x.value || (x.name < y.name ? -1 : 1));
}

// Hue by module: filters do not change it.
export function huesOf(list) {
  return new Map(list.map(({ name }, i) => [name, HUES[i] ?? hash(name) % 360]));
}

export const codeHue = (code) => CODE_HUES[code];

export const stateName = (state) => state || "on CPU";

export function stateHue(state) {
  const hue = STATE_HUES[stateName(state)];
  return hue === undefined ? hash(state) % 360 : hue;
}

export const stateColour = (t, state) => (stateHue(state) === null ? t.note : t.tint(stateHue(state), 0));

// How much it changed, in the unit of the comparison: of what the larger side has, -1 to 1.
export function change(profile, total, was) {
  const after = total * profile.diff.after_unit;
  const before = was * profile.diff.before_unit;
  return after || before ? (after - before) / Math.max(after, before) : 0;
}

// fill, ink, label and stroke of a tree's nodes; in parts [colour, share] of a node with time of several states; and in strip the colour of the state that a leaf is in. found: by key, or null when nothing is searched for.
export function lookOf({ profile, tree, color, dark, hues, found, foundLabels }) {
  const t = theme(dark);
  const { keys } = tree;
  const fills = new Array(keys.count);
  for (let k = 0; k < keys.count; k++) {
    const shift = (hash(keys.name[k]) % 7) - 3;
    if (found) fills[k] = found[k] ? t.found : t.muted;
    else if (keys.kind[k] === KIND_NOTE) fills[k] = t.note;
    else if (color === "kind") fills[k] = t.tint(codeHue(keys.code[k]), shift);
    else fills[k] = t.tint(hues.get(moduleOf(keys.file[k])) ?? 0, shift);
  }
  const rootFill = (key) => (found ? (foundLabels[-2 - key] ? t.found : t.muted) : t.root);
  const plain = (i) => {
    const key = tree.key[i];
    return key >= 0 ? fills[key] : key === -1 ? (found ? t.muted : t.root) : rootFill(key);
  };
  const hit = (i) => found && (tree.key[i] >= 0 ? found[tree.key[i]] : tree.key[i] < -1 && foundLabels[-2 - tree.key[i]]);
  const reds = Array.from({ length: SHADES }, (_, i) => t.shade(6, (i + 1) / SHADES));
  const blues = Array.from({ length: SHADES }, (_, i) => t.shade(214, (i + 1) / SHADES));
  const compared = (i) => {
    const key = tree.key[i];
    const verdict = key < 0 ? 0 : verdictOf(profile, keys, key);
    const c = change(profile, tree.total[i], tree.was[i]);
    // A place in which the function went the other way was not judged on its own.
    if (!verdict || Math.sign(c) !== verdict) return t.even;
    return (c > 0 ? reds : blues)[Math.min(SHADES - 1, Math.floor(Math.abs(c) * SHADES))];
  };
  let fill = color === "change" && !found ? compared : plain;
  let parts = () => [];
  if (color === "state" && !found && !tree.mixed) {
    const { names, main } = statesOf(profile, tree);
    const colours = names.map((name) => stateColour(t, name));
    fill = (i) => colours[main[i]];
    parts = (i) => sharesOf(profile, tree, i).map(([s, share]) => [colours[s], share]);
  }
  const stateColours = new Map(["", ...profile.functions.state].map((name) => [name, stateColour(t, name)]));
  return {
    fill,
    parts,
    stroke: fill,
    strip: found ? plain : (i) => stateColours.get(profile.stateOf(tree.stack[i])),
    ink: (i) => (hit(i) ? t.foundInk : found ? t.mutedInk : t.ink),
    label: (i) => nodeLabel(tree, i),
    outline: t.outline,
    faint: t.faint,
    grid: t.grid,
    ground: t.ground,
  };
}

export function verdictOf(profile, keys, key) {
  return row(profile, keys, key)?.verdict ?? 0;
}

// The comparison's words on a key's function, or undefined.
export function row(profile, keys, key) {
  if (!profile.verdicts || key < 0) return undefined;
  if (!keys.byLine) return profile.verdicts[key];
  if (!keys.toFunction) {
    const functions = new Map(profile.functions.name.map((name, i) => [`${name}\n${profile.functions.file[i]}`, i]));
    keys.toFunction = keys.name.map((name, i) => functions.get(`${name}\n${keys.file[i]}`));
  }
  return profile.verdicts[keys.toFunction[key]];
}

export function nodeLabel(tree, i) {
  const key = tree.key[i];
  if (key >= 0) return tree.keys.cell(key) + (tree.repeats[i] ? " \u21bb" : "");
  return key === -1 ? "all" : short(tree.labels[-2 - key].text, ROOT_LABEL);
}
