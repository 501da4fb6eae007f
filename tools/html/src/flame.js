// SPDX-License-Identifier: Apache-2.0
// A tree as flame graph: what is wide enough is drawn, of what is narrower one stroke for each pixel.

import { Minimap } from "./minimap.js";
import { ROW, Surface } from "./surface.js";

const NARROWEST = 0.5; // pixels of a node that is drawn
const NARROWEST_SPLIT = 3; // pixels of a node that is drawn in several colours
const ZOOM_MS = 180;

// Handlers: select(node), zoom(node), hover(node or -1, event).
export class Flame {
  constructor(host, handlers) {
    this.handlers = handlers;
    this.tree = null;
    this.zoomed = 0;
    this.selected = -1;
    this.hovered = -1;
    this.surface = new Surface(host, (c, width, height, top) => this.draw(c, width, height, top));
    this.surface.onresize = () => this.fitHeight();
    this.minimap = new Minimap(host, this);
    this.surface.onpaint = () => this.tree && this.minimap.paint();
    this.canvas = this.surface.canvas;
    this.canvas.addEventListener("pointermove", (e) => e.pointerType === "mouse" && this.hover(this.nodeAt(e), e));
    this.canvas.addEventListener("pointerleave", (e) => this.hover(-1, e));
    this.canvas.addEventListener("click", (e) => this.click(this.nodeAt(e)));
    this.still = matchMedia("(prefers-reduced-motion: reduce)");
  }

  destroy() {
    cancelAnimationFrame(this.animation);
    this.minimap.destroy();
    this.surface.destroy();
  }

  // tree, flame (root below), look: what lookOf() returns
  show({ tree, flame, look, zoomed, selected }) {
    const fresh = tree !== this.tree || flame !== this.upward;
    this.tree = tree;
    this.upward = flame;
    this.look = look;
    this.selected = selected;
    if (fresh) this.hovered = -1;
    const moved = fresh || zoomed !== this.zoomed;
    this.zoomed = zoomed;
    const to = { start: tree.start[zoomed], size: tree.size[zoomed] || 1 };
    if (fresh) {
      this.fitHeight();
      this.surface.scroller.scrollTop = flame ? this.height : 0;
      cancelAnimationFrame(this.animation);
      this.view = to;
    } else if (moved) {
      this.fitHeight();
      this.move(to);
    }
    if (moved && zoomed) this.reveal(zoomed);
    this.surface.redraw();
  }

  // The height of the whole graph, or of what it is zoomed to.
  fitHeight() {
    const { tree, zoomed } = this;
    if (!tree) return;
    let deepest = tree.maxDepth;
    if (zoomed) {
      deepest = 0;
      for (let i = zoomed; i < tree.end[zoomed]; i++) if (tree.depth[i] > deepest) deepest = tree.depth[i];
    }
    this.rows = deepest + 1;
    this.height = Math.max(this.rows * ROW, this.surface.height);
    this.surface.content = this.rows * ROW;
    this.minimap.fit();
  }

  // The first and the last row that are seen, the root's being 0.
  rowsInView() {
    const { scroller, height } = this.surface;
    const clip = (row) => Math.min(this.rows - 1, Math.max(0, row));
    const first = clip(Math.floor(scroller.scrollTop / ROW));
    const last = clip(Math.ceil((scroller.scrollTop + height) / ROW) - 1);
    return this.upward ? [this.rows - 1 - last, this.rows - 1 - first] : [first, last];
  }

  // Scrolls by windows, or to an end.
  scroll(key) {
    const { scroller, height } = this.surface;
    const tops = { PageDown: scroller.scrollTop + height - ROW, PageUp: scroller.scrollTop - height + ROW, Home: 0, End: this.height };
    scroller.scrollTop = tops[key];
  }

  move(to) {
    cancelAnimationFrame(this.animation);
    if (this.still.matches) {
      this.view = to;
      return;
    }
    const from = this.view;
    const begin = performance.now();
    const step = (now) => {
      const part = Math.min(1, Math.max(0, (now - begin) / ZOOM_MS));
      const ease = 1 - (1 - part) ** 3;
      this.view = { start: from.start + (to.start - from.start) * ease, size: from.size + (to.size - from.size) * ease };
      this.surface.paint();
      if (part < 1) this.animation = requestAnimationFrame(step);
    };
    this.animation = requestAnimationFrame(step);
  }

  top(depth) {
    return this.upward ? this.height - (depth + 1) * ROW : depth * ROW;
  }

  // Scrolls so that a node's row is seen.
  reveal(node) {
    const { scroller, height } = this.surface;
    const y = this.top(this.tree.depth[node]);
    if (y < scroller.scrollTop + ROW) scroller.scrollTop = y - ROW;
    else if (y > scroller.scrollTop + height - 3 * ROW) scroller.scrollTop = y - height + 3 * ROW;
  }

  draw(c, width, height, scrollTop) {
    const { tree, look, view } = this;
    if (!tree || !view) return false;
    const scale = width / view.size;
    const strokes = new Int32Array(this.tree.maxDepth + 1).fill(-1); // last pixel with one, by depth
    const { depth, end, start, size } = tree;
    const deepest = this.upward ? (this.height - scrollTop) / ROW : (scrollTop + height) / ROW;
    this.drawn = 0;
    for (let i = 0; i < tree.count; ) {
      const x = (start[i] - view.start) * scale;
      const w = size[i] * scale;
      if (x >= width || x + w <= 0 || depth[i] > deepest) {
        i = end[i];
        continue;
      }
      const y = this.top(depth[i]) - scrollTop;
      const seen = y > -ROW && y < height;
      if (w < NARROWEST) {
        const pixel = Math.floor(x);
        if (seen && w > 0 && pixel > strokes[depth[i]]) {
          strokes[depth[i]] = pixel;
          c.fillStyle = look.stroke(i);
          c.fillRect(pixel, y, 1, ROW - 1);
        }
        i = end[i];
        continue;
      }
      if (seen) this.box(c, i, x, y, w, width);
      i++;
    }
    for (const node of [this.hovered, this.selected]) if (node >= 0) this.outline(c, node, scale, scrollTop, width);
    return true;
  }

  box(c, i, x, y, w, width) {
    const { look, tree } = this;
    const left = Math.max(x, 0);
    const right = Math.min(x + w, width);
    const above = tree.depth[i] < tree.depth[this.zoomed];
    this.drawn++;
    c.globalAlpha = above ? 0.45 : 1;
    const end = left + Math.max(right - left - (w > 3 ? 1 : 0), NARROWEST);
    const parts = w < NARROWEST_SPLIT ? [] : look.parts(i);
    let at = x;
    (parts.length ? parts : [[look.fill(i), 1]]).forEach(([colour, share], p) => {
      const from = p ? Math.max(left, Math.round(at)) : left;
      at += share * w;
      const to = p + 1 < parts.length ? Math.min(end, Math.round(at)) : end;
      c.fillStyle = colour;
      if (to > from) c.fillRect(from, y, to - from, ROW - 1);
    });
    c.globalAlpha = 1;
    if (right - left > 20) this.surface.text(look.label(i), x, y, w, look.ink(i));
  }

  outline(c, node, scale, scrollTop, width) {
    const x = Math.max((this.tree.start[node] - this.view.start) * scale, 0);
    const right = Math.min((this.tree.start[node] + this.tree.size[node] - this.view.start) * scale, width);
    if (right < 0 || x > width) return;
    c.lineWidth = node === this.selected ? 2 : 1;
    c.strokeStyle = this.look.outline;
    const y = this.top(this.tree.depth[node]) - scrollTop;
    c.strokeRect(x + 0.5, y + 0.5, Math.max(right - x - 2, 1), ROW - 2);
  }

  nodeAt(event) {
    const { tree, view } = this;
    if (!tree || !view) return -1;
    const { x, y } = this.surface.at(event);
    const down = y + this.surface.scroller.scrollTop;
    const row = Math.floor((this.upward ? this.height - down : down) / ROW);
    const value = view.start + (x / this.surface.width) * view.size;
    let i = 0;
    while (tree.depth[i] < row) {
      let child = i + 1;
      while (child < tree.end[i] && tree.start[child] + tree.size[child] <= value) child = tree.end[child];
      if (child >= tree.end[i] || tree.start[child] > value) return -1;
      i = child;
    }
    return row === tree.depth[i] ? i : -1;
  }

  hover(node, event) {
    if (node !== this.hovered) {
      this.hovered = node;
      this.canvas.style.cursor = node >= 0 ? "pointer" : "default";
      this.surface.redraw();
    }
    this.handlers.hover(node, event);
  }

  click(node) {
    if (node < 0) return;
    this.handlers.select(node);
    this.handlers.zoom(node);
  }

  // Where an arrow key leads from the selected node; -1: nowhere.
  neighbour(key) {
    const { tree, selected } = this;
    if (selected < 0) return this.zoomed;
    const parent = tree.parent[selected];
    const deeper = key === (this.upward ? "ArrowUp" : "ArrowDown");
    if (key === "ArrowUp" || key === "ArrowDown") {
      if (!deeper) return parent;
      let widest = -1;
      for (let c = selected + 1; c < tree.end[selected]; c = tree.end[c]) if (widest < 0 || tree.size[c] > tree.size[widest]) widest = c;
      return widest;
    }
    if (parent < 0) return -1;
    let before = -1;
    for (let c = parent + 1; c < tree.end[parent]; c = tree.end[c]) {
      if (key === "ArrowRight" && before === selected) return c;
      if (key === "ArrowLeft" && c === selected) return before;
      before = c;
    }
    return -1;
  }
}
