// SPDX-License-Identifier: Apache-2.0
// Stacks merged into trees. A tree is in typed arrays in depth-first order: node i's subtree is i to end[i], its first
// child is i + 1, and the child after child c is end[c]. Node 0 is the root, and stands for all.
//
// Values: total and self of the profile; was and wasSelf of the profile before, when two are compared; size is what a
// node's width shows.

const MIN_ROOM = 1024;

// Nodes are found by parent and key: open addressing, with linear probing.
class Builder {
  constructor(compared) {
    this.compared = compared;
    this.count = 0;
    this.room = MIN_ROOM;
    this.parent = new Int32Array(this.room);
    this.key = new Int32Array(this.room);
    this.stack = new Int32Array(this.room); // of the profile, which made the node
    this.group = new Int32Array(this.room);
    this.self = new Float64Array(this.room);
    this.wasSelf = compared ? new Float64Array(this.room) : null;
    this.table = new Int32Array(4 * this.room);
    this.parent[0] = -1;
    this.key[0] = -1;
    this.count = 1;
  }

  grow() {
    this.room *= 2;
    for (const name of ["parent", "key", "stack", "group", "self", "wasSelf"]) {
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

  add(node, value, before) {
    this.self[node] += value;
    if (this.compared) this.wasSelf[node] += before;
  }
}

// size(value, before): width. rank: key -> place among siblings, or null for the widest first.
function finish(b, size, rank) {
  const n = b.count;
  const total = b.self.slice(0, n);
  const was = b.compared ? b.wasSelf.slice(0, n) : null;
  for (let i = n - 1; i > 0; i--) {
    total[b.parent[i]] += total[i]; // a parent was made before its children
    if (was) was[b.parent[i]] += was[i];
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
    depth: new Int32Array(n),
    end: new Int32Array(n),
    start: new Float64Array(n),
    size: new Float64Array(n),
    total: new Float64Array(n),
    self: new Float64Array(n),
    was: was && new Float64Array(n),
    wasSelf: was && new Float64Array(n),
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
    t.start[i] = start;
    t.size[i] = width[old];
    t.total[i] = total[old];
    t.self[i] = b.self[old];
    if (was) {
      t.was[i] = was[old];
      t.wasSelf[i] = b.wasSelf[old];
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
    const start = offset[old];
    offset[old] += width[child];
    offset[child] = start;
    place(child, at[old], start);
    open.push(child);
  }
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
    const { container, label: name } = profile.processes[p] ?? { container: "", label: "?" };
    const path = [];
    if (kinds.includes("container")) path.push(label("container", container, container || "[host]"));
    if (kinds.includes("process")) path.push(label("process", p, name));
    if (t >= 0) path.push(label("thread", t, profile.threads[t].label));
    ofPair.set(pair, groups.length);
    groups.push(path);
    return groups.length - 1;
  };
  return { labels, groups, of: kinds.length ? of : () => 0 };
}

// settings: keys (Keys), roots (names of PROFILE_ROOT), passes(sample), size(value, before), rank or null.
export function mergedTree(profile, settings) {
  const { keys, roots, passes, size, rank } = settings;
  const { stackParent, stackFrame, sampleStack, sampleValue, sampleBefore } = profile;
  const b = new Builder(!!sampleBefore);
  const groups = grouped(profile, roots);
  if (!roots.length) groups.groups.push([]);
  const nodeOf = groups.groups.length < 2 ? new Int32Array(stackParent.length) : null;
  const leaves = new Int32Array(sampleStack.length).fill(-1);
  const base = [];
  const chain = [];
  for (let i = 0; i < sampleStack.length; i++) {
    const leaf = sampleStack[i];
    if (!leaf || !passes(i)) continue;
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
      node = b.child(node, keys.ofFrame[stackFrame[s]], s, group);
      if (known) known[s] = node;
    }
    b.add(node, sampleValue[i], sampleBefore ? sampleBefore[i] : 0);
    leaves[i] = node;
  }
  const tree = finish(b, size, rank);
  tree.leaf = leaves.map((node) => (node < 0 ? -1 : tree.renumbered[node])); // sample -> node
  tree.keys = keys;
  tree.labels = groups.labels;
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
  const b = new Builder(!!tree.was);
  const walk = (node, value, before) => {
    let at = 0;
    for (let i = node; tree.key[i] >= 0; i = tree.parent[i]) at = b.child(at, tree.key[i], tree.stack[node], tree.group[node]);
    b.add(at, value, before);
  };
  if (key >= 0) outermost(tree, key, (i) => walk(i, tree.total[i], tree.was ? tree.was[i] : 0));
  else
    for (let i = 1; i < tree.count; i++)
      if (tree.self[i] || (tree.was && tree.wasSelf[i])) walk(i, tree.self[i], tree.was ? tree.wasSelf[i] : 0);
  const callers = finish(b, size, rank);
  callers.keys = tree.keys;
  callers.labels = [];
  return callers;
}

// What a function called.
export function calleesTree(tree, key, { size, rank }) {
  const b = new Builder(!!tree.was);
  const to = new Int32Array(tree.count);
  outermost(tree, key, (top) => {
    for (let i = top; i < tree.end[top]; i++) {
      to[i] = b.child(i === top ? 0 : to[tree.parent[i]], tree.key[i], tree.stack[i], tree.group[i]);
      b.add(to[i], tree.self[i], tree.was ? tree.wasSelf[i] : 0);
    }
  });
  const callees = finish(b, size, rank);
  callees.keys = tree.keys;
  callees.labels = [];
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
