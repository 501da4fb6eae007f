// SPDX-License-Identifier: Apache-2.0
// Stacks merged into trees. A tree is in typed arrays in depth-first order: node i's subtree is i to end[i], its first
// child is i + 1, and the child after child c is end[c]. Node 0 is the root, and stands for all.
//
// Values: total and self of the profile; was and wasSelf of the profile before, when two are compared; size is what a
// node's width shows.

import { KIND_KERNEL, OWN } from "./profile.js";

const MIN_ROOM = 1024;
const LONGEST_REPEAT = 32; // calls in a chain whose repeats are folded

// Nodes are found by parent and key: open addressing, with linear probing.
class Builder {
  constructor(compared, waiting) {
    this.compared = compared;
    this.count = 0;
    this.room = MIN_ROOM;
    this.parent = new Int32Array(this.room);
    this.key = new Int32Array(this.room);
    this.stack = new Int32Array(this.room); // of the profile, which made the node
    this.group = new Int32Array(this.room);
    this.repeats = new Uint8Array(this.room); // whether it stands for repeats
    this.self = new Float64Array(this.room);
    this.wasSelf = compared ? new Float64Array(this.room) : null;
    this.waits = waiting ? new Float64Array(this.room) : null; // how many
    this.table = new Int32Array(4 * this.room);
    this.parent[0] = -1;
    this.key[0] = -1;
    this.count = 1;
  }

  grow() {
    this.room *= 2;
    for (const name of ["parent", "key", "stack", "group", "repeats", "self", "wasSelf", "waits"]) {
      const old = this[name];
      if (!old) continue;
      this[name] = new old.constructor(this.room);
      this[name].set(old);
    }
    this.table = new Int32Array(4 * this.room);
    for (let i = 1; i < this.count; i++) this.table[this.slot(this.parent[i], this.key[i])] = i;
  }

  slot(parent, key) {
    const mask = this.table.length - 1;
    let hash = Math.imul(parent, 0x9e3779b1) ^ Math.imul(key + 1, 0x85ebca6b);
    hash ^= hash >>> 15;
    let at = hash & mask;
    for (let node; (node = this.table[at]) && (this.parent[node] !== parent || this.key[node] !== key); ) at = (at + 1) & mask;
    return at;
  }

  child(parent, key, stack, group) {
    let at = this.slot(parent, key);
    if (this.table[at]) return this.table[at];
    if (this.count === this.room) {
      this.grow();
      at = this.slot(parent, key);
    }
    const node = this.count++;
    this.table[at] = node;
    this.parent[node] = parent;
    this.key[node] = key;
    this.stack[node] = stack;
    this.group[node] = group;
    return node;
  }

  // As child(); but where the path to it would end with a chain of keys twice, the node that ends with it once. So each
  // key of a stack stays on its path, its leaf stays the leaf, and who is beside whom called whom.
  childFolded(parent, key, stack, group) {
    const chain = [key]; // from the new node up
    for (let node = parent, length = 1; node > 0 && length <= LONGEST_REPEAT; node = this.parent[node], length++) {
      if (this.key[node] === key && this.endsWith(chain, node)) {
        for (let n = node, i = 0; i < length; n = this.parent[n], i++) this.repeats[n] = 1;
        return node;
      }
      chain.push(this.key[node]);
    }
    return this.child(parent, key, stack, group);
  }

  endsWith(chain, node) {
    for (const key of chain) {
      if (node <= 0 || this.key[node] !== key) return false;
      node = this.parent[node];
    }
    return true;
  }

  add(node, value, before, waits) {
    this.self[node] += value;
    if (this.waits) this.waits[node] += waits;
    if (this.compared) this.wasSelf[node] += before;
  }
}

// size(value, before): width. rank: key -> place among siblings, or null for the widest first. Nodes without any value are
// left out unless keepEmpty.
function finish(b, size, rank, keepEmpty = false) {
  const n = b.count;
  const total = b.self.slice(0, n);
  const was = b.compared ? b.wasSelf.slice(0, n) : null;
  const waits = b.waits && b.waits.slice(0, n);
  for (let i = n - 1; i > 0; i--) {
    total[b.parent[i]] += total[i]; // a parent was made before its children
    if (was) was[b.parent[i]] += was[i];
    if (waits) waits[b.parent[i]] += waits[i];
  }
  const width = was ? total.map((value, i) => size(value, was[i])) : total;

  // Children of each parent, in one array.
  const first = new Int32Array(n + 1);
  for (let i = 1; i < n; i++) first[b.parent[i] + 1]++;
  for (let i = 0; i < n; i++) first[i + 1] += first[i];
  const children = new Int32Array(n);
  const next = first.slice();
  for (let i = 1; i < n; i++) children[next[b.parent[i]]++] = i;
  const order = rank ? (x, y) => rank[b.key[x]] - rank[b.key[y]] : (x, y) => width[y] - width[x] || x - y;
  for (let i = 0; i < n; i++) if (first[i + 1] - first[i] > 1) children.subarray(first[i], first[i + 1]).sort(order);

  const t = {
    count: n,
    parent: new Int32Array(n),
    key: new Int32Array(n),
    stack: new Int32Array(n),
    group: new Int32Array(n),
    repeats: new Uint8Array(n),
    depth: new Int32Array(n),
    end: new Int32Array(n),
    start: new Float64Array(n),
    size: new Float64Array(n),
    total: new Float64Array(n),
    self: new Float64Array(n),
    was: was && new Float64Array(n),
    wasSelf: was && new Float64Array(n),
    waits: waits && new Float64Array(n), // in all
    waitsSelf: waits && new Float64Array(n),
    maxDepth: 0,
  };
  const at = new Int32Array(n); // old -> new
  const open = [];
  let made = 0;
  const place = (old, parent, start) => {
    const i = made++;
    at[old] = i;
    t.parent[i] = parent;
    t.key[i] = b.key[old];
    t.stack[i] = b.stack[old];
    t.group[i] = b.group[old];
    t.repeats[i] = b.repeats[old];
    t.start[i] = start;
    t.size[i] = width[old];
    t.total[i] = total[old];
    t.self[i] = b.self[old];
    if (was) {
      t.was[i] = was[old];
      t.wasSelf[i] = b.wasSelf[old];
    }
    if (waits) {
      t.waits[i] = waits[old];
      t.waitsSelf[i] = b.waits[old];
    }
    t.depth[i] = open.length;
    if (t.depth[i] > t.maxDepth) t.maxDepth = t.depth[i];
  };
  place(0, -1, 0);
  open.push(0);
  const cursor = first.slice(0, n);
  const offset = new Float64Array(n); // where an open node's next child starts
  while (open.length) {
    const old = open[open.length - 1];
    if (cursor[old] === first[old + 1]) {
      t.end[at[old]] = made;
      open.pop();
      continue;
    }
    const child = children[cursor[old]++];
    if (!keepEmpty && !total[child] && !was?.[child]) continue;
    const start = offset[old];
    offset[old] += width[child];
    offset[child] = start;
    place(child, at[old], start);
    open.push(child);
  }
  t.count = made;
  t.renumbered = at;
  return t;
}

// What stands below the frames of a sample, as groups: each has a path of labels; -1 - i is the key of label i.
function grouped(profile, kinds) {
  const labels = [];
  const known = new Map();
  const groups = [];
  const ofPair = new Map();
  const label = (kind, id, text) => {
    const name = `${kind} ${id}`;
    if (!known.has(name)) {
      known.set(name, labels.length);
      labels.push({ kind, text });
    }
    return known.get(name);
  };
  const of = (sample) => {
    const p = profile.sampleProcess[sample];
    const t = kinds.includes("thread") ? profile.sampleThread[sample] : -1;
    const pair = `${p} ${t}`;
    if (ofPair.has(pair)) return ofPair.get(pair);
    const { container, label: name, parent } = profile.processes[p] ?? { container: "", label: "?", parent: -1 };
    const path = [];
    if (kinds.includes("container")) path.push(label("container", container, container || "[host]"));
    if (kinds.includes("parents")) {
      const chain = [];
      for (let i = parent; i >= 0; i = profile.parents[i].above) {
        const { same, label: of } = profile.parents[i];
        chain.unshift(same >= 0 ? label("process", same, profile.processes[same].label) : label("parent", i, of));
      }
      path.push(...chain);
    }
    if (kinds.includes("process")) path.push(label("process", p, name));
    if (t >= 0) path.push(label("thread", t, profile.threads[t].label));
    ofPair.set(pair, groups.length);
    groups.push(path);
    return groups.length - 1;
  };
  return { labels, groups, of: kinds.length ? of : () => 0 };
}

// settings: keys (Keys), roots (names of PROFILE_ROOT), passes(sample), values and waits or null (by sample), size(value, before), rank or
// null; fold: repeats of a chain of calls once; keepEmpty: nodes of samples without value, too.
export function mergedTree(profile, settings) {
  const { keys, roots, passes, values, waits, size, rank, fold, keepEmpty } = settings;
  const { stackParent, stackFrame, sampleStack, sampleBefore } = profile;
  const b = new Builder(!!sampleBefore, !!waits);
  const groups = grouped(profile, roots);
  if (!roots.length) groups.groups.push([]);
  const nodeOf = groups.groups.length < 2 ? new Int32Array(stackParent.length) : null;
  const leaves = new Int32Array(sampleStack.length).fill(-1);
  const base = [];
  const chain = [];
  for (let i = 0; i < sampleStack.length; i++) {
    const leaf = sampleStack[i];
    if (!leaf || !passes(i) || !(values[i] || sampleBefore?.[i] || keepEmpty)) continue;
    const group = groups.of(i);
    if (base[group] === undefined) {
      let node = 0;
      for (const label of groups.groups[group]) node = b.child(node, -2 - label, 0, group);
      base[group] = node;
    }
    // Down to what this group is known to have, then up again.
    chain.length = 0;
    let s = leaf;
    let node = base[group];
    const known = nodeOf && group === 0 ? nodeOf : null;
    for (; s; s = stackParent[s]) {
      if (known && known[s]) {
        node = known[s];
        break;
      }
      chain.push(s);
    }
    for (let c = chain.length - 1; c >= 0; c--) {
      s = chain[c];
      node = fold ? b.childFolded(node, keys.ofFrame[stackFrame[s]], s, group) : b.child(node, keys.ofFrame[stackFrame[s]], s, group);
      if (known) known[s] = node;
    }
    b.add(node, values[i], sampleBefore ? sampleBefore[i] : 0, waits ? waits[i] : 0);
    leaves[i] = node;
  }
  const tree = finish(b, size, rank, keepEmpty);
  tree.leaf = leaves.map((node) => (node < 0 ? -1 : tree.renumbered[node])); // sample -> node
  tree.keys = keys;
  tree.labels = groups.labels;
  // What shares are of: all that is shown; a comparison judged shares of all there is.
  tree.whole = profile.diff ? { total: profile.total, was: profile.totalBefore } : { total: tree.total[0], was: 0 };
  return tree;
}

// Calls of visit(node) for the outermost nodes with that key.
export function outermost(tree, key, visit) {
  for (let i = 0; i < tree.count; ) {
    if (tree.key[i] === key) {
      visit(i);
      i = tree.end[i];
    } else i++;
  }
}

// Self of each key in the whole profile.
export function selfOf({ sampleStack, sampleValue, stackFrame }, keys) {
  const self = new Float64Array(keys.count);
  sampleStack.forEach((stack, i) => {
    if (stack) self[keys.ofFrame[stackFrame[stack]]] += sampleValue[i];
  });
  return self;
}

// Who called a function (key), the callers of its callers above them; key -1: who called what was running.
export function callersTree(tree, key, { size, rank }) {
  const b = new Builder(!!tree.was, !!tree.waits);
  const walk = (node, value, before, waits) => {
    let at = 0;
    for (let i = node; tree.key[i] >= 0; i = tree.parent[i]) at = b.child(at, tree.key[i], tree.stack[node], tree.group[node]);
    b.add(at, value, before, waits);
  };
  if (key >= 0) outermost(tree, key, (i) => walk(i, tree.total[i], tree.was ? tree.was[i] : 0, tree.waits ? tree.waits[i] : 0));
  else
    for (let i = 1; i < tree.count; i++)
      if (tree.self[i] || (tree.was && tree.wasSelf[i])) walk(i, tree.self[i], tree.was ? tree.wasSelf[i] : 0, tree.waits ? tree.waitsSelf[i] : 0);
  const callers = finish(b, size, rank);
  callers.keys = tree.keys;
  callers.labels = [];
  callers.whole = tree.whole;
  callers.mixed = key >= 0; // its nodes have time of several states, which are not told apart
  return callers;
}

// What a function called.
export function calleesTree(tree, key, { size, rank }) {
  const b = new Builder(!!tree.was, !!tree.waits);
  const to = new Int32Array(tree.count);
  outermost(tree, key, (top) => {
    for (let i = top; i < tree.end[top]; i++) {
      to[i] = b.child(i === top ? 0 : to[tree.parent[i]], tree.key[i], tree.stack[i], tree.group[i]);
      b.add(to[i], tree.self[i], tree.was ? tree.wasSelf[i] : 0, tree.waits ? tree.waitsSelf[i] : 0);
    }
  });
  const callees = finish(b, size, rank);
  callees.keys = tree.keys;
  callees.labels = [];
  callees.whole = tree.whole;
  return callees;
}

// Self and total of each key: a sample counts once for a key, however often it is on the stack.
export function sums(tree) {
  const n = tree.keys.count;
  const self = new Float64Array(n);
  const total = new Float64Array(n);
  const was = tree.was && new Float64Array(n);
  const wasSelf = tree.was && new Float64Array(n);
  const until = new Int32Array(n); // end of the node with that key that is open
  for (let i = 1; i < tree.count; i++) {
    const key = tree.key[i];
    if (key < 0) continue;
    self[key] += tree.self[i];
    if (was) wasSelf[key] += tree.wasSelf[i];
    if (i < until[key]) continue;
    until[key] = tree.end[i];
    total[key] += tree.total[i];
    if (was) was[key] += tree.was[i];
  }
  return { self, total, was, wasSelf };
}

// The time by state: names, "" first, which is running; of: for each node and name; main: for each node the name's index
// that has most of its time.
export function statesOf(profile, tree) {
  if (tree.states) return tree.states;
  const names = ["", ...new Set(profile.functions.state.filter(Boolean))];
  const n = names.length;
  const of = new Float64Array(tree.count * n);
  const main = new Uint8Array(tree.count);
  for (let i = tree.count - 1; i >= 0; i--) {
    const at = i * n;
    if (tree.self[i]) of[at + names.indexOf(profile.stateOf(tree.stack[i]))] += tree.self[i];
    for (let s = 1; s < n; s++) if (of[at + s] > of[at + main[i]]) main[i] = s;
    if (i) for (let s = 0; s < n; s++) of[tree.parent[i] * n + s] += of[at + s];
  }
  return (tree.states = { names, of, main });
}

// [index of the state, share of the node's time], the largest first; empty where all is of one state.
export function sharesOf(profile, tree, i) {
  const { names, of } = statesOf(profile, tree);
  const n = names.length;
  const found = names.map((_, s) => [s, of[i * n + s] / (tree.total[i] || 1)]).filter(([, share]) => share > 0);
  return found.length > 1 ? found.sort((x, y) => y[1] - x[1] || x[0] - y[0]) : [];
}

// For a node's leaf, the node of the function that runs or waits, and that of the nearest one of the program's own, as
// Profile.nearestOwn() has it: [waiter, own]; a leaf without functions is both.
function ownOf(tree, i) {
  const { keys, key, parent } = tree;
  let waiter = i;
  if (keys.state[key[i]]) while (key[waiter] >= 0 && (keys.state[key[waiter]] || keys.kind[key[waiter]] === KIND_KERNEL)) waiter = parent[waiter];
  if (key[waiter] < 0) return [i, i];
  let own = waiter;
  for (let at = waiter; key[at] >= 0 && keys.origin[key[own]] !== OWN; at = parent[at]) if (keys.origin[key[at]] < keys.origin[key[own]]) own = at;
  return [waiter, own];
}

// Time by state of each function with what it calls: [{key, via: -1, values: by state}].
export function statesWithCalled(profile, tree) {
  const { names, of } = statesOf(profile, tree);
  const n = names.length;
  const found = [];
  const until = new Int32Array(tree.keys.count);
  for (let i = 1; i < tree.count; i++) {
    const key = tree.key[i];
    if (key < 0 || tree.keys.state[key] || i < until[key]) continue;
    until[key] = tree.end[i];
    found[key] ??= { key, via: -1, values: new Float64Array(n) };
    for (let s = 0; s < n; s++) found[key].values[s] += of[i * n + s];
  }
  return found.filter(Boolean);
}

// Likewise of what runs or waits itself, its waits included; a library's is that of the nearest function of the program's
// own, and via: the library's.
export function statesOwn(profile, tree) {
  const { names } = statesOf(profile, tree);
  const found = new Map();
  for (let i = 1; i < tree.count; i++) {
    if (tree.key[i] < 0 || !tree.self[i]) continue;
    const [waiter, own] = ownOf(tree, i);
    const key = tree.key[own];
    const via = tree.key[waiter] === key ? -1 : tree.key[waiter];
    const id = `${key} ${via}`;
    if (!found.has(id)) found.set(id, { key, via, values: new Float64Array(names.length) });
    found.get(id).values[names.indexOf(tree.keys.state[tree.key[i]])] += tree.self[i];
  }
  return [...found.values()];
}

// How much the nodes have that a search found, what is above them counted once. found: by key; roots: by label.
export function matched(tree, found, labels) {
  let total = 0;
  let was = 0;
  for (let i = 1; i < tree.count; ) {
    const key = tree.key[i];
    if (key >= 0 ? found[key] : labels[-2 - key]) {
      total += tree.total[i];
      if (tree.was) was += tree.was[i];
      i = tree.end[i];
    } else i++;
  }
  return { total, was };
}

// The node that was made for a stack of a group, or whose label has that depth; -1: none.
export function findNode(tree, group, stack, depth) {
  for (let i = 1; i < tree.count; i++)
    if (tree.stack[i] === stack && tree.group[i] === group && tree.depth[i] === depth) return i;
  return -1;
}

// Who called the nodes with a key, and whom they called, each function of those once for a sample:
// {callers, callees: [{id, label, place, file, line, value}]}. A caller's line is where it called, a callee's its first.
export function neighbours(tree, { functions, stackFrame }, key) {
  const callers = new Map();
  const callees = new Map();
  const open = new Map(); // function -> end of the node that was counted last
  const functionOf = (i) => functions.ofFrame[stackFrame[tree.stack[i]]];
  const note = (list, id, f, line, value) => {
    if (!list.has(id)) list.set(id, { id, label: functions.label(f), place: functions.numbered(functions.file[f], line), file: functions.file[f], line, value: 0 });
    list.get(id).value += value;
  };
  let until = 0;
  for (let i = 1; i < tree.count; i++) {
    if (tree.key[i] !== key) continue;
    const above = tree.parent[i];
    if (i >= until) {
      until = tree.end[i];
      if (tree.key[above] >= 0) note(callers, tree.key[above], functionOf(above), tree.keys.line[tree.key[above]], tree.total[i]);
    }
    for (let c = i + 1; c < tree.end[i]; c = tree.end[c]) {
      const f = functionOf(c);
      if (c < (open.get(f) ?? 0)) continue;
      open.set(f, tree.end[c]);
      note(callees, f, f, functions.line[f], tree.total[c]);
    }
  }
  const sorted = (list) => [...list.values()].sort((x, y) => y.value - x.value);
  return { callers: sorted(callers), callees: sorted(callees) };
}
