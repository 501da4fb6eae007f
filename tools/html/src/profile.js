// SPDX-License-Identifier: Apache-2.0
// The profile that the page carries, as the contract of user/output/formats/html.c has it, in typed arrays.

import { isTime, short } from "./format.js";

const FORMAT = "pybpf-html";
const VERSION = 1;

export const KIND_NOTE = 1;
export const KIND_PYTHON = 0; // enum profile_frame_kind
export const KIND_KERNEL = 3;
export const KIND_NATIVE = 4;
// Kinds of code in words, as enum output_code numbers them.
export const CODES = ["Python", "extension module", "library", "interpreter", "kernel", "note"];
export const INCOMPLETE = "[native frames incomplete]"; // PROFILE_NATIVE_INCOMPLETE
export const OWN = 0; // enum profile_origin: the program's own
const SUSPENDED = "awaits"; // the state of stacks whose time is that of a suspended task
const NO_ORIGIN = 3; // of what is no function of Python

// Letters that are written from right to left: a number beside them would be drawn on their other side.
const LEFTWARD = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/;
const isolated = (text) => (LEFTWARD.test(text) ? `\u2068${text}\u2069` : text);
const LABEL = 120; // letters of a label at most

// Control characters and marks that change the direction of text, which could make a name look like another.
const MISLEADING = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

export function printable(text) {
  return text.replace(MISLEADING, (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));
}

function bytesOf(base64) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(base64);
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}

export async function unpack(base64) {
  if (!globalThis.DecompressionStream) throw new Error("this browser is too old to unpack it (it lacks DecompressionStream)");
  const unzipped = new Blob([bytesOf(base64)]).stream().pipeThrough(new DecompressionStream("gzip"));
  const data = await new Response(unzipped).json();
  if (data.format !== FORMAT || data.version !== VERSION)
    throw new Error(`its data is ${data.format} version ${data.version}, not ${FORMAT} version ${VERSION}`);
  return data;
}

// What belongs together by colour: a path's first folder, below the folder that Python
// finds modules in; the interpreter's own frozen modules are one.
export function moduleOf(file) {
  const found = /(?:site-packages|dist-packages|python\d[\d.]*t?)\/(?!site-packages|dist-packages)(.*)/.exec(file);
  let path = found ? found[1] : file;
  if (path.startsWith("<frozen ")) return "<frozen>";
  if (path.startsWith("/")) {
    const parts = path.split("/").filter(Boolean);
    return parts.length > 1 ? parts[parts.length - 2] : parts[0];
  }
  const slash = path.indexOf("/");
  if (slash > 0) path = path.slice(0, slash);
  return path;
}

// Frames that count as one: functions (name, file, library), lines of them (with the line), places (file, line),
// whatever function is there, or spots, the expressions at a place. ofFrame: frame -> key.
class Keys {
  constructor(data, strings, what) {
    const { name, file, line, first_line, kind, code, state, end_line, column, end_column, library } = data.frames;
    const byLine = what !== "function";
    const origins = new Map(data.origins.file.map((text, i) => [text, data.origins.origin[i]]));
    const known = new Map();
    this.ofFrame = new Int32Array(name.length);
    this.name = [];
    this.file = [];
    this.library = []; // of compiled code: the file that has it, which is not that of its source
    this.line = []; // with byLine that line, else the function's first; -1 where unknown
    this.kind = [];
    this.code = []; // index in CODES
    this.origin = [];
    this.spans = []; // of a spot: where it begins and ends, [line, column, line, column], or null
    this.state = []; // of a thread that waits, in the leaf of its stack; "": it does not
    for (let f = 0; f < name.length; f++) {
      const owner = what === "place" || what === "spot" ? "" : `${name[f]}.${kind[f]}.${state?.[f] ?? 0}.${library?.[f] ?? 0}`;
      const span = what === "spot" && end_line[f] ? [line[f], column[f], end_line[f], end_column[f]] : null;
      const id = `${owner}.${file[f]}.${byLine ? line[f] : ""}.${span}`;
      let key = known.get(id);
      if (key === undefined) {
        known.set(id, (key = this.name.length));
        this.name.push(strings[name[f]]);
        this.file.push(strings[file[f]]);
        this.library.push(strings[(library ?? file)[f]]);
        this.spans.push(span);
        this.line.push(byLine ? line[f] : first_line[f]);
        this.kind.push(kind[f]);
        this.code.push(code[f]);
        this.origin.push(kind[f] === KIND_PYTHON ? (origins.get(file[f]) ?? OWN) : NO_ORIGIN);
        this.state.push(state ? strings[state[f]] : "");
      } else if (!byLine && this.line[key] < 0) this.line[key] = first_line[f];
      this.ofFrame[f] = key;
    }
    this.count = this.name.length;
    this.byLine = byLine;
    this.labels = [];
  }

  place(key) {
    const { file, line } = this;
    if (!file[key]) return "";
    return line[key] < 0 ? file[key] : `${file[key]}:${line[key]}`;
  }

  // As names are shown: long ones without their middle.
  label(key) {
    return (this.labels[key] ??= this.numbered(this.name[key], this.byLine ? this.line[key] : -1));
  }

  // As a graph has it, in which nothing beside it says the file: of a module's body it is all that tells it from others.
  cell(key) {
    if (this.name[key] !== "<module>" || !this.file[key]) return this.label(key);
    return this.numbered(`<module> ${this.file[key]}`, this.byLine ? this.line[key] : -1);
  }

  shortPlace(key) {
    return this.file[key] && this.numbered(this.file[key], this.line[key]);
  }

  numbered(text, line) {
    return isolated(short(text, LABEL)) + (line < 0 ? "" : `:${line}`);
  }

  // What a search looks at, as folded stacks spell it.
  text(key) {
    const place = this.place(key);
    return place ? `${this.name[key]} (${place})` : this.name[key];
  }
}

export class Profile {
  constructor(data) {
    const strings = data.strings.map(printable);
    const { stacks, samples, events, processes, threads } = data;
    this.measure = data.measure;
    this.facts = data.facts;
    this.titles = data.titles;
    this.account = data.account;
    this.roots = data.roots;
    this.waits = data.frames.state !== undefined;
    this.frameLine = Int32Array.from(data.frames.line);
    this.frameWaker = data.frames.waker && Int32Array.from(data.frames.waker); // TID of who ended a wait; 0: not told
    this.functions = new Keys(data, strings, "function");
    this.lines = new Keys(data, strings, "line");
    this.places = new Keys(data, strings, "place");
    this.spots = data.frames.end_line ? new Keys(data, strings, "spot") : null; // null: no columns were recorded

    const count = stacks.down.length;
    this.stackParent = new Int32Array(count);
    this.stackFrame = Int32Array.from(stacks.frame);
    this.stackDepth = new Int32Array(count); // number of frames
    this.idle = new Set(stacks.idle ?? []); // stacks that wait for work
    for (let s = 1; s < count; s++) {
      this.stackParent[s] = s - stacks.down[s];
      this.stackDepth[s] = this.stackDepth[this.stackParent[s]] + 1;
    }

    const labelled = (name, pid, inner, ended) =>
      pid ? `${name} (${pid}${inner ? `, ${inner} inside` : ""}${ended ? ", ended" : ""})` : name;
    // Who started the processes: each with the index of who started it, and of the process that it is, or -1.
    const { parents } = data;
    this.parents = parents.pid.map((pid, i) => ({
      above: parents.above[i],
      same: parents.same[i],
      label: labelled(strings[parents.name[i]], pid, parents.inner_pid[i], parents.ended[i]),
    }));
    this.processes = processes.pid.map((pid, i) => {
      const name = strings[processes.name[i]];
      const label = labelled(name, pid, processes.inner_pid[i], false);
      return { pid, name, label, container: strings[processes.container[i]], parent: processes.parent[i] };
    });
    this.threads = threads.tid.map((tid, i) => {
      const name = strings[threads.name[i]];
      return { process: threads.process[i], tid, name, label: `${name} (${tid})` };
    });
    this.containers = [...new Set(this.processes.map((p) => p.container))].sort();
    this.sampleStack = Int32Array.from(samples.stack);
    this.sampleProcess = Int32Array.from(samples.process);
    this.sampleThread = Int32Array.from(samples.thread);
    this.sampleValue = Float64Array.from(samples.value);
    this.sampleWaits = samples.count ? Float64Array.from(samples.count, (n, i) => (this.stateOf(samples.stack[i]) ? n : 0)) : null;
    this.sampleBefore = samples.before ? Float64Array.from(samples.before) : null;

    let time = 0;
    this.eventTime = Float64Array.from(events.later_us, (later) => (time += later)); // microseconds
    this.eventSample = Int32Array.from(events.sample);
    this.eventValue = Float64Array.from(events.value);
    // How long a wait lasted that began then; 0: a sample, which is a moment.
    this.intervals = isTime(this);
    this.eventLength = this.eventValue.map((value, e) => (this.intervals && this.stateOf(this.sampleStack[this.eventSample[e]]) ? value : 0));
    this.timed = this.eventTime.length > 0;
    this.lastTime = this.eventTime.reduce((last, t, e) => Math.max(last, t + this.eventLength[e]), 0);
    this.sources = new Map(data.sources.file.map((file, i) => [strings[file], data.strings[data.sources.text[i]].split("\n")]));
    this.diff = data.diff;
    this.total = 0;
    this.totalBefore = 0;
    this.suspended = 0; // of the total: time of asyncio's suspended tasks, and of no thread
    for (let i = 0; i < this.sampleStack.length; i++) {
      if (!this.sampleStack[i]) continue;
      this.total += this.sampleValue[i];
      if (this.isSuspended(this.sampleStack[i])) this.suspended += this.sampleValue[i];
      if (this.sampleBefore) this.totalBefore += this.sampleBefore[i];
    }
    if (this.diff) this.verdicts = this.verdictsByKey(data.diff.functions);
  }

  // For each function's key the row of the comparison.
  verdictsByKey(functions) {
    const row = new Map(functions.name.map((name, i) => [`${printable(name)}\n${printable(functions.file[i])}`, i]));
    const { name, file, count } = this.functions;
    return Array.from({ length: count }, (_, key) => {
      const i = row.get(`${name[key]}\n${file[key]}`);
      if (i === undefined) return null;
      return Object.fromEntries(Object.entries(functions).map(([column, values]) => [column, values[i]]));
    });
  }

  isSuspended(stack) {
    return this.stateOf(stack) === SUSPENDED;
  }

  // The state in which a stack's leaf waits; "": it runs.
  stateOf(stack) {
    return stack ? this.functions.state[this.functions.ofFrame[this.stackFrame[stack]]] : "";
  }

  // The key of the function on top of a stack.
  functionOf(stack) {
    return this.functions.ofFrame[this.stackFrame[stack]];
  }

  // The stack that waits, without what it waits for; the stack itself if it runs.
  waiterOf(stack) {
    if (!this.stateOf(stack)) return stack;
    while (stack && (this.stateOf(stack) || this.functions.kind[this.functionOf(stack)] === KIND_KERNEL)) stack = this.stackParent[stack];
    return stack;
  }

  // The nearest function of the program's own below the one that runs or waits, as profile_nearest_own() finds it.
  nearestOwn(stack) {
    let found = this.waiterOf(stack);
    let best = NO_ORIGIN;
    for (let s = found; s && best !== OWN; s = this.stackParent[s]) {
      const origin = this.functions.origin[this.functionOf(s)];
      if (origin < best) [best, found] = [origin, s];
    }
    return found;
  }

  // The TID of the thread that ended the waits of a stack; 0: not known.
  wakerOf(stack) {
    for (; this.frameWaker && this.stateOf(stack); stack = this.stackParent[stack]) {
      const tid = this.frameWaker[this.stackFrame[stack]];
      if (tid) return tid;
    }
    return 0;
  }

  // The share of an event that is in a range of time, in microseconds.
  shareWithin(e, from, to) {
    const begin = this.eventTime[e];
    const length = this.eventLength[e];
    if (!length) return begin >= from && begin < to ? 1 : 0;
    return Math.max(0, Math.min(begin + length, to) - Math.max(begin, from)) / length;
  }

  // Returns for each sample what was taken in that range, and how many waits.
  within(from, to) {
    const values = new Float64Array(this.sampleStack.length);
    const waits = this.sampleWaits && new Float64Array(this.sampleStack.length);
    for (let e = 0; e < this.eventTime.length; e++) {
      const share = this.shareWithin(e, from, to);
      values[this.eventSample[e]] += share * this.eventValue[e];
      if (waits && share && this.eventLength[e]) waits[this.eventSample[e]]++;
    }
    return { values, waits };
  }

  // Samples with frames whose time was not kept: no range of time has them.
  get untimed() {
    let kept = 0;
    this.eventSample.forEach((sample, e) => (kept += this.sampleStack[sample] ? this.eventValue[e] : 0));
    return Math.max(0, this.total - kept);
  }

  get empty() {
    return this.total + this.totalBefore === 0;
  }

  get anonymousThreads() {
    return this.sampleThread.every((t) => t < 0);
  }
}
