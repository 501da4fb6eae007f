// SPDX-License-Identifier: Apache-2.0
// The time in compiled code by its file: extension modules, libraries, the interpreter.

import { useMemo } from "preact/hooks";

import { amount, bare, counted, escaped, number, percent, short } from "./format.js";
import { CODES, KIND_NATIVE, KIND_PYTHON } from "./profile.js";

const LISTED = 8;
const FILE = 60; // letters of a file's name
const CALLER = 60; // letters of a caller's name

const add = (map, key, value) => map.set(key, (map.get(key) ?? 0) + value);
const most = (map) => [...map].sort((x, y) => y[1] - x[1])[0][0];
// Callers, those with most first.
const ranked = (callers) => [...callers.values()].sort((x, y) => y.value - x.value || x.key - y.key).map(({ key, value, lines }) => ({ key, value, line: most(lines) }));

// The files whose functions samples were taken in themselves, those with most first: {file ("": none), code, self,
// hasSources: lines of its functions are known, which have the names of their sources,
// callers: {key, value, line: the one that called most, or the function's first} of the nearest functions of the
// program's own, those with most first}.
export function compiledFiles({ profile, passes, values }) {
  const { sampleStack, functions, frameLine, stackFrame } = profile;
  const found = new Map();
  for (let i = 0; i < sampleStack.length; i++) {
    const stack = sampleStack[i];
    if (!stack || !values[i] || !passes(i)) continue;
    const leaf = profile.functionOf(stack);
    if (functions.kind[leaf] !== KIND_NATIVE || functions.state[leaf]) continue;
    const file = functions.library[leaf];
    if (!found.has(file)) found.set(file, { file, code: functions.code[leaf], self: 0, hasSources: false, callers: new Map() });
    const one = found.get(file);
    one.hasSources ||= functions.file[leaf] !== file;
    one.self += values[i];
    const own = profile.nearestOwn(stack);
    const key = profile.functionOf(own);
    if (functions.kind[key] !== KIND_PYTHON) continue;
    if (!one.callers.has(key)) one.callers.set(key, { key, value: 0, lines: new Map() });
    const caller = one.callers.get(key);
    const line = frameLine[stackFrame[own]];
    caller.value += values[i];
    add(caller.lines, line < 0 ? functions.line[key] : line, values[i]);
  }
  return [...found.values()]
    .map((one) => ({ ...one, callers: ranked(one.callers) }))
    .sort((x, y) => y.self - x.self || (x.file < y.file ? -1 : 1));
}

function Caller({ model, callers, self }) {
  const { functions } = model.profile;
  if (!callers.length) return <td>no Python function</td>;
  const { key, value, line } = callers[0];
  return (
    <td>
      <button class="plain" title={short(functions.text(key), 1000)} onClick={() => model.set({ view: "graph", by: "function", fn: String(key), q: "" })}>
        {short(functions.label(key), CALLER)}
      </button>{" "}
      <span class="place">{functions.file[key] && functions.numbered(functions.file[key], line)}</span> ({percent(value / self)})
      {callers.length > 1 && ` and ${number(callers.length - 1)} more`}
    </td>
  );
}

export function Compiled({ model }) {
  const { profile, set } = model;
  const files = useMemo(() => compiledFiles(model), [profile, model.passes, model.values]);
  if (!files.length) return null;
  const all = model.tree.whole.total || 1;
  const sum = (list) => list.reduce((total, { self }) => total + self, 0);
  const rest = files.slice(LISTED);
  return (
    <section class="compiled" aria-label="Compiled code" data-testid="compiled">
      <p class="lead">
        <b>{percent(sum(files) / all)}</b> of the {counted(profile)} shown {counted(profile) === "time" ? "was" : "were"} in compiled code itself{profile.waits && ", waits not included"}, in these files:
      </p>
      <table>
        <thead>
          <tr>
            <th scope="col" class="number">Self</th>
            <th scope="col">File</th>
            <th scope="col">Code</th>
            <th scope="col">Called most from</th>
          </tr>
        </thead>
        <tbody>
          {files.slice(0, LISTED).map(({ file, code, self, hasSources, callers }) => (
            <tr key={file}>
              <td class="number" title={amount(profile, self)}>
                <b>{percent(self / all)}</b> <small>{bare(profile, self)}</small>
              </td>
              <td>
                {hasSources ? (
                  short(file, FILE)
                ) : file ? (
                  <button class="plain" title={`Search for ${short(file, 1000)}`} onClick={() => set({ view: "graph", fn: "", q: `\\(${escaped(file)}\\)` })}>
                    {short(file, FILE)}
                  </button>
                ) : (
                  "in no file"
                )}
              </td>
              <td>{file ? CODES[code] : ""}</td>
              <Caller model={model} callers={callers} self={self} />
            </tr>
          ))}
        </tbody>
      </table>
      {rest.length > 0 && (
        <p class="words">
          and {number(rest.length)} {rest.length === 1 ? "file" : "files"} more with {percent(sum(rest) / all)}
        </p>
      )}
    </section>
  );
}
