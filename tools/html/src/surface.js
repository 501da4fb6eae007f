// SPDX-License-Identifier: Apache-2.0
// A canvas as large as what is seen of a scrolled area, and boxes with text on it.

import { drawn } from "./clock.js";

export const ROW = 20; // pixels
const PAD = 5;
const NARROWEST_TEXT = 26;
const SHEET_WIDTH = 1040; // pixels: a sheet of A4 on its side without its margins
const SHEET_HEIGHT = 620;
const SHARP_SHEETS = 20;
const FONT = '12px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif';

// host: an element to fill. draw(context, width, height, scrollTop), called at most once a frame, tells whether it had
// anything to draw.
export class Surface {
  constructor(host, draw) {
    this.draw = draw;
    this.scroller = document.createElement("div");
    this.scroller.className = "scroller";
    this.scroller.setAttribute("role", "group");
    this.scroller.setAttribute("aria-label", "rows");
    this.canvas = document.createElement("canvas");
    this.spacer = document.createElement("div");
    this.scroller.append(this.canvas, this.spacer);
    host.append(this.scroller);
    this.context = this.canvas.getContext("2d");
    this.widths = new Map(); // of texts, in pixels
    this.scroller.addEventListener("scroll", () => this.redraw(), { passive: true });
    this.watcher = new ResizeObserver(() => this.resize());
    this.watcher.observe(this.scroller);
    this.resize();
  }

  destroy() {
    this.watcher.disconnect();
    cancelAnimationFrame(this.pending);
    this.scroller.remove();
  }

  resize() {
    const { clientWidth, clientHeight } = this.scroller;
    if (clientWidth === this.width && clientHeight === this.height && devicePixelRatio === this.ratio) return;
    this.width = clientWidth;
    this.height = clientHeight;
    this.ratio = devicePixelRatio;
    this.canvas.width = Math.round(clientWidth * this.ratio);
    this.canvas.height = Math.round(clientHeight * this.ratio);
    this.canvas.style.width = clientWidth + "px";
    this.canvas.style.height = clientHeight + "px";
    this.onresize?.();
    this.paint();
  }

  // The whole area's height.
  set content(height) {
    this.contentHeight = height;
    this.spacer.style.height = Math.max(0, height - this.height) + "px";
    this.scroller.tabIndex = height > this.height ? 0 : -1; // what scrolls can be reached with the keyboard
  }

  redraw() {
    this.pending ??= requestAnimationFrame(() => {
      this.pending = null;
      this.paint();
    });
  }

  paint() {
    const c = this.context;
    this.prepare();
    c.clearRect(0, 0, this.width, this.height);
    if (this.draw(c, this.width, this.height, this.scroller.scrollTop)) drawn();
    this.onpaint?.();
  }

  // All of it in pictures, each of which fits on a sheet of paper; what is at the top of each of them is that high.
  // Returns what removes them.
  print(header = 0) {
    const { context, width, height, ratio } = this;
    const sheets = document.createElement("div");
    sheets.className = "printed";
    this.width = SHEET_WIDTH;
    this.height = 0;
    this.onresize?.();
    this.ratio = this.contentHeight > SHARP_SHEETS * SHEET_HEIGHT ? 1 : 2; // memory: 10 MB a sheet
    for (let top = 0; top + header < this.contentHeight; top += SHEET_HEIGHT - header) {
      const canvas = document.createElement("canvas");
      this.height = Math.min(SHEET_HEIGHT, this.contentHeight - top);
      canvas.width = SHEET_WIDTH * this.ratio;
      canvas.height = this.height * this.ratio;
      this.context = canvas.getContext("2d");
      this.prepare();
      this.draw(this.context, this.width, this.height, top);
      sheets.append(canvas);
    }
    Object.assign(this, { context, width, height, ratio });
    this.onresize?.();
    this.scroller.after(sheets);
    return () => sheets.remove();
  }

  prepare() {
    this.context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    this.context.font = FONT;
    this.context.textBaseline = "middle";
  }

  // Pointer's place: x, y on the canvas.
  at(event) {
    const box = this.canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  measure(text) {
    let width = this.widths.get(text);
    if (width === undefined) {
      if (this.widths.size > 20000) this.widths.clear();
      this.widths.set(text, (width = this.context.measureText(text).width));
    }
    return width;
  }

  // As much of the text as fits.
  fit(text, room) {
    const width = this.measure(text);
    if (width <= room) return text;
    const letters = Array.from(text.length > 400 ? text.slice(0, 400) : text);
    for (let n = Math.min(letters.length, Math.floor((letters.length * room) / width)); n > 1; n--) {
      const part = letters.slice(0, n).join("") + "\u2026";
      if (this.context.measureText(part).width <= room) return part;
    }
    return "";
  }

  // A box's text; what is left of the canvas is not part of its room.
  text(label, x, y, width, color) {
    const left = Math.max(x, 0);
    const room = Math.min(x + width, this.width) - left - 2 * PAD;
    if (room < NARROWEST_TEXT - 2 * PAD) return;
    const shown = this.fit(label, room);
    if (!shown) return;
    this.context.fillStyle = color;
    this.context.fillText(shown, left + PAD, y + ROW / 2);
  }
}
