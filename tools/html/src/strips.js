// SPDX-License-Identifier: Apache-2.0
// What each thread waited for over time: a strip for each, of its waits and of the samples between them, in the colours
// of states. A line joins the end of a wait to the thread that ended it, where that is known and has a strip.

import { bisectRight } from "d3-array";

import { ROW } from "./surface.js";
import { AXIS, Timeline } from "./timeline.js";

const LINE = 2; // pixels: time that is neither known to be a wait nor sampled
const JOINED_FROM = 6; // pixels: shorter waits are joined when the pointer or a key chooses them
const DOT = 2.5; // pixels: at the end of a line where the waker is

// Handlers as of Timeline, and chosen(node, from, to): a key chose it.
export class Strips extends Timeline {
  // From when to when event i of a lane is drawn, whose neighbours are before and after it: a wait as long as it was; a
  // sample as far as half way to the next one, but for no longer than a period on each side.
  extent({ times, lengths }, i, before = -1, after = times.length) {
    const at = times[i];
    if (lengths[i]) return [at, at + lengths[i]];
    const low = before < 0 ? at - this.period : lengths[before] ? times[before] + lengths[before] : (times[before] + at) / 2;
    const high = after >= times.length ? at + this.period : lengths[after] ? times[after] : (at + times[after]) / 2;
    return [Math.min(at, Math.max(low, at - this.period, 0)), Math.max(at, Math.min(high, at + this.period))];
  }

  show(shown) {
    super.show(shown);
    this.over = null;
    this.byTid = new Map();
    for (const lane of shown.lanes) this.byTid.set(lane.order[1], [...(this.byTid.get(lane.order[1]) ?? []), lane]);
  }

  // The leaf of a wait, without the remarks behind it: what it was for.
  waitOf(node) {
    const { tree } = this;
    const waits = (i) => tree.key[i] >= 0 && tree.keys.state[tree.key[i]];
    while (waits(node) && waits(tree.parent[node])) node = tree.parent[node];
    return node;
  }

  // The strip of the thread that had a TID at a time, of several one after the other that had it.
  laneAt(tid, time) {
    const found = this.byTid.get(tid) ?? [];
    return found.find(({ times, lengths }) => times[0] - this.period <= time && time <= times.at(-1) + Math.max(lengths.at(-1), this.period));
  }

  draw(c, width, height, scrollTop) {
    this.lines = [];
    if (!super.draw(c, width, height, scrollTop)) return false;
    c.save();
    c.beginPath();
    c.rect(0, AXIS, width, height);
    c.clip();
    for (const box of this.boxes) if (box.right - box.left >= JOINED_FROM) this.join(c, box, scrollTop, false);
    for (const at of [this.over, this.at]) if (at) this.join(c, at, scrollTop, true);
    c.restore();
    return true;
  }

  // Joins a wait to the thread that ended it.
  join(c, { lane, event }, scrollTop, strong) {
    const tid = lane.wakers[event];
    if (!tid) return;
    const end = lane.times[event] + lane.lengths[event];
    const waker = this.laneAt(tid, end);
    if (!waker || waker === lane) return;
    const [begin, until] = this.view;
    const x = Math.round(((end - begin) / (until - begin)) * this.surface.width) - 0.5;
    this.lines.push({ lane, waker, end, strong });
    const above = waker.top < lane.top;
    const from = lane.top - scrollTop + (above ? ROW : 2 * ROW);
    const to = waker.top - scrollTop + (above ? 2 * ROW : ROW);
    c.strokeStyle = c.fillStyle = strong ? this.look.outline : this.look.faint;
    c.lineWidth = strong ? 2 : 1;
    c.beginPath();
    c.moveTo(x, from);
    c.lineTo(x, to);
    c.stroke();
    c.beginPath();
    c.arc(x, to, strong ? DOT + 1 : DOT, 0, 2 * Math.PI);
    c.fill();
  }

  drag(event) {
    super.drag(event);
    const over = this.pointers.size ? null : this.boxAt(event);
    if (over?.lane === this.over?.lane && over?.event === this.over?.event) return;
    this.over = over;
    if (this.byTid.size > 1) this.surface.redraw();
  }

  lane(c, lane, y, x, width) {
    const { look } = this;
    this.surface.text(lane.label, 0, y, width, look.faint);
    const top = y + ROW;
    const events = this.chosen(lane, width);
    let open = null;
    const close = () => {
      if (!open) return;
      const { node, from, to, event } = open;
      const left = x(from);
      const w = Math.max(x(to) - left, 0.5);
      if (left <= width && left + w >= 0) {
        this.boxes.push({ node, from, to, lane, event, left, right: left + w, top });
        c.fillStyle = look.strip(node);
        c.fillRect(left, top, Math.max(w - (w > 3 ? 1 : 0), 0.5), ROW - 1);
        if (w > 20) this.surface.text(look.label(this.waitOf(node)), left, top, w, look.ink(node));
      }
    };
    events.forEach((i, e) => {
      const node = lane.nodes[i];
      const [from, to] = this.extent(lane, i, events[e - 1], events[e + 1]);
      if (open && !lane.lengths[i] && open.node === node && from <= open.to) {
        open.to = to;
        return;
      }
      close();
      if (open && from > open.to) {
        c.fillStyle = look.faint;
        c.fillRect(x(open.to), top + (ROW - LINE) / 2, x(from) - x(open.to), LINE);
      }
      open = { node, from, to, event: i };
    });
    close();
    if (this.at?.lane !== lane || this.at.event >= lane.times.length) return;
    const [from, to] = this.extent(lane, this.at.event, this.at.event - 1, this.at.event + 1);
    c.strokeStyle = look.outline;
    c.lineWidth = 2;
    c.strokeRect(x(from) + 0.5, top + 0.5, Math.max(x(to) - x(from) - 2, 1), ROW - 2);
  }

  // Chooses the event before or after the chosen one, or that of the thread above or below; all within what is in
  // view.
  choose(key) {
    const [begin, end] = this.view;
    const now = Math.max(0, this.lanes.indexOf(this.at?.lane));
    const step = { ArrowUp: -1, ArrowDown: 1 }[key] ?? 0;
    const lane = this.lanes[Math.min(this.lanes.length - 1, Math.max(0, now + (this.at ? step : 0)))];
    const first = Math.max(0, bisectRight(lane.times, begin) - 1);
    const last = Math.max(first, bisectRight(lane.times, end) - 1);
    let event = first;
    if (this.at && step) event = bisectRight(lane.times, this.at.lane.times[this.at.event]) - 1;
    else if (this.at) event = this.at.event + (key === "." ? 1 : -1);
    this.at = { lane, event: Math.min(last, Math.max(first, event)) };
    const [from, to] = this.extent(lane, this.at.event, this.at.event - 1, this.at.event + 1);
    const { scroller, height } = this.surface;
    if (lane.top < scroller.scrollTop || lane.top + 2 * ROW > scroller.scrollTop + height) scroller.scrollTop = lane.top - height / 3;
    this.surface.redraw();
    this.handlers.chosen(lane.nodes[this.at.event], from, to);
  }
}
