// SPDX-License-Identifier: Apache-2.0
// Which parts of a file's lines were executed, where the profile has columns: bytes of UTF-8, as Python has them.

import { printable } from "./profile.js";

const LINES = 30; // an expression on more lines, such as a class, is marked on its first one
export const TAB = "    ";

export const shownText = (line) => printable(line.replaceAll("\t", TAB));

// Returns the place in the shown text that each byte of one line has, -1 within a character.
function placesOf(line) {
  const places = [];
  let at = 0;
  for (const character of line) {
    const code = character.codePointAt(0);
    const bytes = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    places.push(at);
    for (let i = 1; i < bytes; i++) places.push(-1);
    at += shownText(character).length;
  }
  places.push(at);
  return places;
}

// Returns [from, to] of an expression on one of its lines in the shown text, or null where the
// text is not the one that ran.
function partOn(n, [line, column, endLine, endColumn], lines, placesAt) {
  const raw = lines[n - 1];
  if (raw === undefined) return null;
  const places = placesAt(n);
  const from = n === line ? places[column] : places[raw.length - raw.trimStart().length];
  const to = n === endLine ? places[endColumn] : places[places.length - 1];
  return from >= 0 && to >= from && to !== undefined ? [from, to] : null;
}

// An expression neither begins nor ends with a space.
const touches = (text, [from, to]) => from === to || !/^\s|\s$/.test(text.slice(from, to));

// For each line the parts that were executed, [{from, to, size, spot}], the largest expression first; of: for each line the
// expressions that begin there, [{text, self, total, column}], the hottest first. lines: as the profile has them; shown: as they are
// printed. null: none is known, or one does not fit the text.
export function expressionsOf({ profile, spotSums }, name, lines, shown) {
  const { spots } = profile;
  if (!spotSums || !lines) return null;
  const known = new Map();
  const placesAt = (n) => known.get(n) ?? (known.set(n, placesOf(lines[n - 1])), known.get(n));
  const parts = new Map();
  const of = new Map();
  const put = (map, n, what) => (map.has(n) ? map.get(n).push(what) : map.set(n, [what]));
  for (let k = 0; k < spots.count; k++) {
    const span = spots.spans[k];
    if (spots.file[k] !== name || !span || !spotSums.total[k]) continue;
    const [line, , endLine] = span;
    const first = partOn(line, span, lines, placesAt);
    const last = partOn(endLine, span, lines, placesAt);
    if (!first || !last || (line === endLine && !touches(shown[line - 1], first))) return null;
    const spot = { self: spotSums.self[k], total: spotSums.total[k], column: span[1] + 1, text: shown[line - 1].slice(...first) + (line < endLine ? " \u2026" : "") };
    const size = (endLine - line) * 1e6 + last[1] - first[0];
    put(of, line, spot);
    for (let n = line; n <= (endLine - line < LINES ? endLine : line); n++) {
      const [from, to] = partOn(n, span, lines, placesAt) ?? [0, 0];
      if (to > from) put(parts, n, { from, to, size, spot });
    }
  }
  if (!of.size) return null;
  for (const list of parts.values()) list.sort((x, y) => y.size - x.size);
  for (const list of of.values()) list.sort((x, y) => y.total - x.total);
  return { parts, of };
}

// The parts of a line without overlaps, in order: what is in several belongs to the smallest expression.
export function apart(parts) {
  const ends = [...new Set(parts.flatMap(({ from, to }) => [from, to]))].sort((x, y) => x - y);
  const out = [];
  for (let i = 0; i + 1 < ends.length; i++) {
    const inner = parts.findLast(({ from, to }) => from <= ends[i] && ends[i + 1] <= to);
    if (!inner) continue;
    const last = out[out.length - 1];
    if (last && last[2] === inner.spot && last[1] === ends[i]) last[1] = ends[i + 1];
    else out.push([ends[i], ends[i + 1], inner.spot]);
  }
  return out;
}
