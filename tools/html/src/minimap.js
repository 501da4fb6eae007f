// SPDX-License-Identifier: Apache-2.0
// A graph that is higher than its window, as a whole: how wide each of its rows is, and which rows are in the window. A
// press or a drag scrolls there.

import { number } from "./format.js";

const WIDTH = 44; // pixels
const WORTH = 2; // windows that a graph is high before it gets one

export class Minimap {
  constructor(host, flame) {
    this.flame = flame;
    this.host = host;
    this.canvas = document.createElement("canvas");
    this.canvas.className = "minimap";
    this.canvas.setAttribute("aria-hidden", "true");
    this.canvas.dataset.testid = "minimap";
    this.words = document.createElement("div");
    this.words.className = "position";
    this.words.dataset.testid = "position";
    host.append(this.canvas, this.words);
    this.canvas.addEventListener("pointerdown", (e) => {
      this.canvas.setPointerCapture(e.pointerId);
      this.scroll(e);
    });
    this.canvas.addEventListener("pointermove", (e) => e.buttons && this.scroll(e));
  }

  destroy() {
    this.canvas.remove();
    this.words.remove();
    this.host.classList.remove("mapped");
  }

  scroll(event) {
    const { surface } = this.flame;
    const box = this.canvas.getBoundingClientRect();
    const middle = ((event.clientY - box.top) / box.height) * surface.contentHeight;
    surface.scroller.scrollTop = middle - surface.height / 2;
  }

  // What share of the graph's width each row has.
  measure() {
    const { tree, zoomed, rows } = this.flame;
    this.widths = new Float64Array(rows);
    const all = tree.size[zoomed] || 1;
    for (let node = zoomed; node >= 0; node = tree.parent[node]) this.widths[tree.depth[node]] = 1;
    for (let i = zoomed + 1; i < tree.end[zoomed]; i++) this.widths[tree.depth[i]] += tree.size[i] / all;
  }

  // Tells whether the graph has one.
  fit() {
    const { surface } = this.flame;
    const shown = surface.contentHeight > WORTH * surface.height && surface.height > 0;
    this.host.classList.toggle("mapped", shown);
    this.shown = shown;
    if (shown) this.measure();
  }

  paint() {
    if (!this.shown) return;
    const { surface, look, upward, rows } = this.flame;
    const { height, ratio, contentHeight } = surface;
    this.canvas.width = WIDTH * ratio;
    this.canvas.height = height * ratio;
    this.canvas.style.width = `${WIDTH}px`;
    this.canvas.style.height = `${height}px`;
    const c = this.canvas.getContext("2d");
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.fillStyle = look.grid;
    c.fillRect(0, 0, WIDTH, height);
    c.fillStyle = look.faint;
    for (let y = 0; y < height; y++) {
      const from = Math.floor((y / height) * rows);
      const to = Math.max(from + 1, Math.floor(((y + 1) / height) * rows));
      let widest = 0;
      for (let r = from; r < to && r < rows; r++) widest = Math.max(widest, this.widths[upward ? rows - 1 - r : r]);
      if (widest) c.fillRect(0, y, Math.max(1, widest * (WIDTH - 4)), 1);
    }
    const { scrollTop } = surface.scroller;
    c.strokeStyle = look.outline;
    c.lineWidth = 2;
    c.strokeRect(1, (scrollTop / contentHeight) * height + 1, WIDTH - 2, Math.max(4, (height / contentHeight) * height - 2));
    const [first, last] = this.flame.rowsInView();
    this.words.textContent = `rows ${number(first + 1)}\u2013${number(last + 1)} of ${number(rows)}`;
  }
}
