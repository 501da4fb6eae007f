// SPDX-License-Identifier: Apache-2.0
// Files with what each of their lines took; their text, where the profile has it, with a search, and for a line who
// called it and what it calls.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import { apart, expressionsOf, shownText } from "./expressions.js";
import { bare, counted, escaped, number, percent, short } from "./format.js";
import { compile } from "./model.js";
import { Note, Rows } from "./parts.jsx";
import { usePrinting } from "./printing.js";
import { KIND_NATIVE } from "./profile.js";
import { coloured } from "./python.js";
import { neighbours } from "./tree.js";

const FILES = 200;
const LINKS = 12; // callers, or callees, of a line
const SEARCH_MS = 150;

// For each file what it has itself, and its lines: number -> [self, total].
function filesOf({ lineTree, lineSums }) {
  const files = new Map();
  const { keys } = lineTree;
  for (let k = 0; k < keys.count; k++) {
    const name = keys.file[k];
    if (!name || !lineSums.total[k]) continue;
    if (!files.has(name)) files.set(name, { name, native: keys.kind[k] === KIND_NATIVE, self: 0, lines: new Map(), keys: new Map() });
    const file = files.get(name);
    file.self += lineSums.self[k];
    file.lines.set(keys.line[k], [lineSums.self[k], lineSums.total[k]]);
    file.keys.set(keys.line[k], k);
  }
  return [...files.values()].sort((x, y) => y.self - x.self || (x.name < y.name ? -1 : 1));
}

// Pieces of a line, [kind, text, ...], cut where ranges [from, to, what] begin and end: [kind, text, ..., what or undefined].
function cut(pieces, ranges) {
  const out = [];
  let at = 0;
  let next = 0;
  for (const [kind, part, ...more] of pieces) {
    for (let from = 0, to; from < part.length; from = to) {
      while (ranges[next] && ranges[next][1] <= at + from) next++;
      const [begin, end, what] = ranges[next] ?? [Infinity];
      const inside = begin <= at + from;
      to = Math.min(part.length, (inside ? end : begin) - at);
      out.push([kind, part.slice(from, to), ...more, inside ? what : undefined]);
    }
    at += part.length;
  }
  return out;
}

function rangesOf(pieces, expression) {
  const text = pieces.map(([, part]) => part).join("");
  return [...text.matchAll(expression)].filter(([found]) => found).map((found) => [found.index, found.index + found[0].length, true]);
}

// The pieces as elements; those of one executed part are in one, shaded by its samples.
function elements(profile, pieces, all) {
  const out = [];
  pieces.forEach(([kind, part, hit, spot], p) => {
    const piece = hit ? <mark key={p}>{part}</mark> : kind ? <span key={p} class={kind}>{part}</span> : part;
    const last = out[out.length - 1];
    if (last && last.spot === spot) last.inside.push(piece);
    else out.push({ spot, inside: [piece] });
  });
  return out.map(({ spot, inside }, i) =>
    spot ? (
      <span key={`part ${i}`} class="part" style={{ "--share": spot.total / all }} title={inWords(profile, spot, all)}>
        {inside}
      </span>
    ) : (
      inside
    ),
  );
}

const inWords = (profile, { text, self, total }, all) => `${short(text, 120)}\n${bare(profile, self)} self, ${bare(profile, total)} total: ${percent(total / all)}`;

function Code({ model, file, text, expressions, expression, hits, chosen }) {
  const { set, lineTree } = model;
  const all = lineTree.whole.total || 1;
  const rows = useMemo(() => text?.map((_, i) => i + 1) ?? [...file.lines.keys()].sort((x, y) => x - y), [file, text]);
  const pieces = useMemo(() => text && coloured(text), [text]);
  const hottest = useMemo(() => {
    let most = 0;
    let at = -1;
    rows.forEach((n, i) => {
      const line = file.lines.get(n);
      if (line && line[0] + line[1] / 1e6 > most) {
        most = line[0] + line[1] / 1e6;
        at = i;
      }
    });
    return at;
  }, [rows, file]);
  const global = useMemo(() => expression && new RegExp(expression.source, expression.flags + "g"), [expression]);
  const most = Math.max(1, ...[...file.lines.values()].map(([self]) => self));
  const reveal = chosen > 0 ? rows.indexOf(chosen) : hottest;
  const one = (i, tabIndex) => {
    const n = rows[i];
    const [self, total] = file.lines.get(n) ?? [0, 0];
    const line = pieces?.[i] ?? [];
    const parts = expressions?.parts.get(n);
    const shown = cut(cut(line, global && hits.has(n) ? rangesOf(line, global) : []), apart(parts ?? []));
    return (
      <div class={`line${n === chosen ? " chosen" : ""}${parts ? " apart" : ""}`} role="row" key={n} style={{ height: "20px", "--heat-share": self / most }} title={total ? `${bare(model.profile, self)} self, ${bare(model.profile, total)} total` : undefined}>
        <span class="heat" role="cell">{self ? percent(self / all) : ""}</span>
        <span class="through" role="cell">{total ? percent(total / all) : ""}</span>
        <span class="n" role="cell">
          <button data-row={i} tabIndex={tabIndex} aria-label={`Line ${n}: callers and callees`} onClick={() => set({ file: file.name, line: n > 0 ? String(n) : "" })}>
            {n > 0 ? n : "?"}
          </button>
        </span>
        <code role="cell">{elements(model.profile, shown, all)}</code>
      </div>
    );
  };
  return (
    <div class="code" data-testid="code" role="table" aria-label={`Lines of ${short(file.name, 120)}`}>
      <div role="rowgroup">
        <div class="line head" role="row">
          <span class="heat" role="columnheader">Self</span>
          <span class="through" role="columnheader">Total</span>
          <span class="n" role="columnheader">Line</span>
          <code role="columnheader" title={short(file.name, 1000)}>{short(file.name, 160)}</code>
        </div>
      </div>
      <Rows key={file.name} count={rows.length} height={20} render={one} label="Lines" reveal={reveal} />
    </div>
  );
}

function Links({ title, list, total, go }) {
  return (
    <div>
      <h2>{title}</h2>
      {list.length ? (
        <ul>
          {list.slice(0, LINKS).map((link) => (
            <li key={link.id}>
              <button class="plain" disabled={!link.file} onClick={() => go(link)}>
                {link.label}
              </button>{" "}
              <span class="place">
                {link.place} {percent(link.value / (total || 1))}
              </span>
            </li>
          ))}
          {list.length > LINKS && <li>and {list.length - LINKS} more</li>}
        </ul>
      ) : (
        <p>none</p>
      )}
    </div>
  );
}

// The expressions of a line, as no title is shown without a mouse.
function Executed({ list, all }) {
  return (
    <div data-testid="executed">
      <h2>Executed</h2>
      <ul>
        {list.slice(0, LINKS).map((spot, i) => (
          <li key={i}>
            <code>{short(spot.text, 80)}</code>{" "}
            <span class="place">
              {list.some((other) => other !== spot && other.text === spot.text) && `column ${spot.column}, `}
              {percent(spot.total / all)} total, {percent(spot.self / all)} self
            </span>
          </li>
        ))}
        {list.length > LINKS && <li>and {list.length - LINKS} more</li>}
      </ul>
    </div>
  );
}

// Who called the function of a line when it was on the stack, and what the line calls.
function LineDetails({ model, file, line, expressions }) {
  const { profile, lineTree, set } = model;
  const key = file.keys.get(line);
  const found = useMemo(() => key !== undefined && neighbours(lineTree, profile, key), [lineTree, key]);
  const [self, total] = file.lines.get(line) ?? [0, 0];
  const go = (link) => set({ file: link.file, line: link.line > 0 ? String(link.line) : "" });
  return (
    <section class="details around" aria-label={`Line ${line}`} data-testid="around">
      <div class="who">
        <b>Line {line}</b>{" "}
        <span class="place">
          {found ? `${percent(self / (lineTree.whole.total || 1))} self, ${percent(total / (lineTree.whole.total || 1))} total` : "Nothing that is shown has this line on its stack."}
        </span>
      </div>
      {expressions && <Executed list={expressions} all={lineTree.whole.total || 1} />}
      {found && <Links title="Called from" list={found.callers} total={total} go={go} />}
      {found && <Links title="Calls" list={found.callees} total={total} go={go} />}
      <div class="actions">
        <button onClick={() => set({ line: "" })} aria-label="Close">
          {"\u2715"}
        </button>
      </div>
    </section>
  );
}

// The search in the text of files: Enter goes to the next match, with Shift to the one before.
function TextSearch({ model, box, hits, others, error, step }) {
  const { state, set } = model;
  const [text, setText] = useState(state.text);
  const timer = useRef();
  useEffect(() => setText(state.text), [state.text]);
  const type = (e) => {
    const value = e.currentTarget.value;
    setText(value);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => set({ text: value }), SEARCH_MS);
  };
  const press = (e) => {
    if (e.key === "Enter") step(e.shiftKey ? -1 : 1);
    else if (e.key === "Escape" && state.text) set({ text: "" });
    else return;
    e.preventDefault();
    e.stopPropagation();
  };
  return (
    <div class="search" role="search">
      <input ref={box} type="search" value={text} onInput={type} onKeyDown={press} placeholder="Search in the sources" aria-label="Search in the sources by a regular expression" aria-invalid={!!error} aria-describedby="lines-found" spellcheck={false} autocomplete="off" />
      <output id="lines-found" data-testid="lines-found" class={error ? "error" : ""}>
        {error || (state.text && `${number(hits.size)} ${hits.size === 1 ? "line" : "lines"} here, ${number(others)} in other files`)}
      </output>
    </div>
  );
}

function Compiled({ file, set }) {
  return (
    <p class="lead" data-testid="no source">
      {short(file, 120)} is compiled code: a profile has the names of its functions, and neither their lines nor their source.{" "}
      <button onClick={() => set({ view: "table", by: "function", q: `\\(${escaped(file)}\\)` })}>Its functions</button>
    </p>
  );
}

export function SourceView({ model, box }) {
  const { profile, state, set } = model;
  const files = useMemo(() => filesOf(model), [model.lineSums]);
  const printing = usePrinting();
  const { expression, error } = useMemo(() => compile(state.text), [state.text]);
  const file = files.find((f) => f.name === state.file) ?? files.find((f) => !f.native) ?? files[0];
  const text = useMemo(() => file && profile.sources.get(file.name)?.map(shownText), [profile, file?.name]);
  const expressions = useMemo(() => file && expressionsOf(model, file.name, profile.sources.get(file.name), text), [model.spotSums, file?.name]);
  const matches = useMemo(() => {
    const count = (lines) => lines.reduce((sum, line) => sum + (expression.test(line) ? 1 : 0), 0);
    return new Map(expression ? [...profile.sources].map(([name, lines]) => [name, count(lines)]) : []);
  }, [profile, expression]);
  const hits = useMemo(() => new Set(expression && text ? text.flatMap((line, i) => (expression.test(line) ? [i + 1] : [])) : []), [text, expression]);
  if (!file) return <Note title="Nothing here">Nothing that passes the filters has a file.</Note>;
  const others = [...matches].reduce((sum, [name, n]) => sum + (name === file.name ? 0 : n), 0);
  const line = Number(state.line) || -1;
  const step = (by) => {
    const list = [...hits];
    if (!list.length) return;
    const next = by > 0 ? list.find((n) => n > line) ?? list[0] : list.findLast((n) => n < line) ?? list[list.length - 1];
    set({ file: file.name, line: String(next) });
  };
  return (
    <div class="sources" data-testid="sources">
      <nav aria-label="Files">
        {files.slice(0, FILES).map((f) => (
          <button key={f.name} class={f === file ? "chosen" : ""} aria-current={f === file} onClick={() => set({ file: f.name })} style={{ "--share": f.self / (model.lineTree.whole.total || 1) }} title={short(f.name, 1000)}>
            <span class="file">{short(f.name, 80)}</span>
            <small>
              {percent(f.self / (model.lineTree.whole.total || 1))}
              {f.native ? ", compiled" : profile.sources.has(f.name) ? "" : ", counts only"}
              {matches.get(f.name) > 0 && `, ${number(matches.get(f.name))} found`}
            </small>
          </button>
        ))}
        {files.length > FILES && <p class="lead">and {number(files.length - FILES)} files with less</p>}
      </nav>
      <div class="column">
        {!printing && profile.sources.size > 0 && <TextSearch model={model} box={box} hits={hits} others={others} error={error} step={step} />}
        {file.native && <Compiled file={file.name} set={set} />}
        {!file.native && !text && <p class="lead">The text of this file is not in the report: it was not readable, not as it ran, or not among the hottest.</p>}
        {expressions && <p class="lead">Parts of lines are shaded by the {counted(profile)} while they were executed, or called what was.</p>}
        {!file.native && <Code model={model} file={file} text={text} expressions={expressions} expression={expression} hits={hits} chosen={line} />}
        {line > 0 && <LineDetails model={model} file={file} line={line} expressions={expressions?.of.get(line)} />}
      </div>
    </div>
  );
}
