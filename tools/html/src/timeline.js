// SPDX-License-Identifier: Apache-2.0
// What each thread did over time: a lane for each, in which neighbouring samples of the same call are one box. However
// many samples there are, at most two for each pixel are looked at.

import { bisectRight, ticks } from "d3-array";

import { short } from "./format.js";
import { ROW, Surface } from "./surface.js";

export const AXIS = 24; // pixels
const GAP = 10; // between lanes
const LABEL = 160; // letters of a lane's
const TICK_EVERY = 110;
const SHORTEST_US = 50; // that the view is zoomed to
const DRAG = 4; // pixels that make a click a drag
const JOINED = 2; // periods between two samples that are one stretch of work

export function duration(us) {
  const [value, unit] = us >= 1e6 ? [us / 1e6, "s"] : us >= 1e3 ? [us / 1e3, "ms"] : [us, "\u00b5s"];
  return `${Number(value.toPrecision(4))} ${unit}`;
}

// The lanes of a tree (mergedTree without roots) of what passed the filters, those with most samples first; with waits,
// which fill all of the time, one row high and in the order of the threads.
export function lanes(profile, tree) {
  const { eventTime, eventSample, eventLength, intervals, sampleStack, sampleProcess, sampleThread, processes, threads } = profile;
  const byThread = new Map();
  const order = Uint32Array.from(eventTime.keys()).sort((x, y) => eventTime[x] - eventTime[y]);
  for (const e of order) {
    const sample = eventSample[e];
    const node = tree.leaf[sample];
    if (node < 0) continue;
    const id = `${sampleProcess[sample]} ${sampleThread[sample]}`;
    if (!byThread.has(id)) {
      const process = processes[sampleProcess[sample]]?.label ?? "";
      const thread = threads[sampleThread[sample]]?.label;
      byThread.set(id, { label: short(thread ? `${process} \u203a ${thread}` : process, LABEL), order: [sampleProcess[sample], threads[sampleThread[sample]]?.tid ?? 0], times: [], lengths: [], nodes: [], wakers: [], depth: 0 });
    }
    const lane = byThread.get(id);
    lane.times.push(eventTime[e]);
    lane.lengths.push(eventLength[e]);
    lane.nodes.push(node);
    if (intervals) lane.wakers.push(eventLength[e] ? profile.wakerOf(sampleStack[sample]) : 0);
    lane.depth = intervals ? 1 : Math.max(lane.depth, tree.depth[node]);
  }
  const byOrder = (x, y) => x.order[0] - y.order[0] || x.order[1] - y.order[1];
  const found = [...byThread.values()].sort(intervals ? byOrder : (x, y) => y.times.length - x.times.length);
  let top = AXIS;
  for (const lane of found) {
    lane.top = top;
    top += (1 + lane.depth) * ROW + GAP;
  }
  return found;
}

// Handlers: select(node), view([from, to] in microseconds, or null), hover(box or null, event).
export class Timeline {
  constructor(host, handlers) {
    this.handlers = handlers;
    this.boxes = [];
    this.pointers = new Map();
    this.surface = new Surface(host, (c, width, height, top) => this.draw(c, width, height, top));
    this.surface.onresize = () => this.fitHeight();
    const canvas = (this.canvas = this.surface.canvas);
    canvas.style.touchAction = "pan-y";
    canvas.addEventListener("pointerdown", (e) => this.down(e));
    canvas.addEventListener("pointermove", (e) => this.drag(e));
    for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, (e) => this.up(e));
    canvas.addEventListener("pointerleave", (e) => this.handlers.hover(null, e));
    canvas.addEventListener("wheel", (e) => this.wheel(e), { passive: false });
  }

  destroy() {
    this.surface.destroy();
  }

  show({ tree, lanes: shown, period, look, view, selected }) {
    this.tree = tree;
    this.lanes = shown;
    this.period = period;
    this.look = look;
    this.selected = selected;
    let last = 0;
    for (const { times, lengths } of shown) last = Math.max(last, times[times.length - 1] + lengths[times.length - 1]);
    this.whole = [0, (last + period) * 1.01];
    this.view = view ?? this.whole;
    this.fitHeight();
    this.surface.redraw();
  }

  fitHeight() {
    const last = this.lanes?.[this.lanes.length - 1];
    if (last) this.surface.content = last.top + (1 + last.depth) * ROW + GAP;
  }

  // As wide as asked for, but no wider than all, no shorter than SHORTEST_US.
  lookAt(from, to) {
    const length = Math.min(Math.max(to - from, SHORTEST_US), this.whole[1]);
    const start = Math.min(Math.max(from, 0), this.whole[1] - length);
    this.view = [start, start + length];
    this.surface.redraw();
    clearTimeout(this.told);
    this.told = setTimeout(() => this.handlers.view(length >= this.whole[1] ? null : this.view.map(Math.round)), 150);
  }

  // Zooms by a factor around a share of the width.
  zoom(factor, around = 0.5) {
    const [from, to] = this.view;
    const at = from + (to - from) * around;
    this.lookAt(at - (at - from) * factor, at + (to - at) * factor);
  }

  // Moves by a share of the width.
  pan(share) {
    const by = (this.view[1] - this.view[0]) * share;
    this.lookAt(this.view[0] + by, this.view[1] + by);
  }

  reset() {
    this.lookAt(...this.whole);
  }

  draw(c, width, height, scrollTop) {
    if (!this.tree) return false;
    const [from, to] = this.view;
    const x = (t) => ((t - from) / (to - from)) * width;
    this.boxes = [];
    c.fillStyle = this.look.grid;
    const times = ticks(from, to, Math.max(2, Math.round(width / TICK_EVERY)));
    for (const t of times) c.fillRect(Math.round(x(t)), AXIS, 1, height);
    for (const lane of this.lanes) {
      const y = lane.top - scrollTop;
      if (y > height || y + (1 + lane.depth) * ROW < 0) continue;
      this.lane(c, lane, y, x, width, height);
    }
    c.fillStyle = this.look.ground;
    c.fillRect(0, 0, width, AXIS - 2);
    for (const t of times) this.surface.text(duration(t), x(t) - 4, 2, TICK_EVERY, this.look.faint);
    return true;
  }

  // Samples from which to draw: all that are in view, or one for each half pixel.
  chosen(lane, width) {
    const { times } = lane;
    const [from, to] = this.view;
    const first = Math.max(0, bisectRight(times, from - JOINED * this.period) - 1);
    const last = bisectRight(times, to);
    if (last - first <= 2 * width) return Array.from({ length: last - first }, (_, i) => first + i);
    const found = [];
    for (let i = 0; i < 2 * width; i++) {
      const event = bisectRight(times, from + ((to - from) * i) / (2 * width), first, last) - 1;
      if (event >= 0 && event !== found[found.length - 1]) found.push(event);
    }
    return found;
  }

  lane(c, lane, y, x, width, height) {
    const { tree, period, look } = this;
    this.surface.text(lane.label, 0, y, width, look.faint);
    const open = []; // by depth: {node, from, to}
    const close = (depth) => {
      while (open.length > depth) {
        const { node, from, to } = open.pop();
        const left = x(from);
        const w = Math.max(x(to) - left, 0.5);
        const top = y + (open.length + 1) * ROW;
        if (left > width || left + w < 0 || top > height || top < AXIS - 2 * ROW) continue;
        this.boxes.push({ node, from, to, left, right: left + w, top });
        c.fillStyle = look.fill(node);
        c.fillRect(left, top, Math.max(w - (w > 3 ? 1 : 0), 0.5), ROW - 1);
        if (w > 20) this.surface.text(look.label(node), left, top, w, look.ink(node));
        if (node === this.selected) {
          c.strokeStyle = look.outline;
          c.lineWidth = 2;
          c.strokeRect(left + 0.5, top + 0.5, w - 2, ROW - 2);
        }
      }
    };
    const path = [];
    let until = -Infinity;
    const events = this.chosen(lane, width);
    for (let e = 0; e < events.length; e++) {
      const i = events[e];
      const from = lane.times[i];
      const next = e + 1 < events.length ? lane.times[events[e + 1]] : Infinity;
      const pause = (lane.times[i + 1] ?? Infinity) - from > JOINED * period;
      const to = pause ? from + period : next;
      let node = lane.nodes[i];
      for (; tree.depth[node]; node = tree.parent[node]) path[tree.depth[node] - 1] = node;
      const depth = tree.depth[lane.nodes[i]];
      let same = 0;
      if (from <= until) while (same < depth && same < open.length && open[same].node === path[same]) same++;
      close(same);
      for (let d = 0; d < depth; d++) {
        if (d < same) open[d].to = to;
        else open.push({ node: path[d], from, to });
      }
      until = to;
    }
    close(0);
  }

  boxAt(event) {
    const { x, y } = this.surface.at(event);
    return this.boxes.find((b) => x >= b.left && x < Math.max(b.right, b.left + 2) && y >= b.top && y < b.top + ROW) ?? null;
  }

  down(event) {
    this.canvas.setPointerCapture(event.pointerId);
    this.pointers.set(event.pointerId, event.clientX);
    this.origin = { x: event.clientX, view: this.view, dragged: false };
  }

  drag(event) {
    if (!this.pointers.has(event.pointerId)) {
      if (event.pointerType === "mouse") {
        const box = this.boxAt(event);
        this.canvas.style.cursor = box ? "pointer" : "grab";
        this.handlers.hover(box, event);
      }
      return;
    }
    const { width } = this.surface;
    const spread = () => {
      const [one, other] = [...this.pointers.values()];
      return Math.abs(one - other) + 1;
    };
    const before = this.pointers.size > 1 ? spread() : 0;
    this.pointers.set(event.pointerId, event.clientX);
    if (before) {
      this.origin.dragged = true;
      this.zoom(before / spread());
    } else if (Math.abs(event.clientX - this.origin.x) > DRAG || this.origin.dragged) {
      this.origin.dragged = true;
      const [from, to] = this.origin.view;
      const by = ((this.origin.x - event.clientX) / width) * (to - from);
      this.lookAt(from + by, to + by);
    }
  }

  up(event) {
    if (!this.pointers.delete(event.pointerId) || this.pointers.size) return;
    if (event.type === "pointercancel" || this.origin.dragged) return;
    const box = this.boxAt(event);
    if (!box) return;
    this.handlers.select(box.node);
    const margin = (box.to - box.from) * 0.02;
    this.lookAt(box.from - margin, box.to + margin);
  }

  wheel(event) {
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      this.zoom(Math.exp(event.deltaY * 0.004), this.surface.at(event).x / this.surface.width);
    } else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      event.preventDefault();
      this.pan(event.deltaX / this.surface.width);
    }
  }
}
