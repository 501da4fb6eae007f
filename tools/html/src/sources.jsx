// SPDX-License-Identifier: Apache-2.0
// Files with what each of their lines took; their text, where the profile has it.

import { useMemo } from "preact/hooks";

import { number, percent } from "./format.js";
import { Note, Rows } from "./parts.jsx";
import { printable } from "./profile.js";

const TAB = "    ";

// For each file what it has itself, and its lines: number -> [self, total].
function filesOf({ lineTree, lineSums }) {
  const files = new Map();
  const { keys } = lineTree;
  for (let k = 0; k < keys.count; k++) {
    const name = keys.file[k];
    if (!name || !lineSums.total[k]) continue;
    if (!files.has(name)) files.set(name, { name, self: 0, lines: new Map() });
    const file = files.get(name);
    const line = file.lines.get(keys.line[k]) ?? [0, 0];
    file.self += lineSums.self[k];
    file.lines.set(keys.line[k], [line[0] + lineSums.self[k], line[1] + lineSums.total[k]]);
  }
  return [...files.values()].sort((x, y) => y.self - x.self || (x.name < y.name ? -1 : 1));
}

function Code({ profile, file }) {
  const text = profile.sources.get(file.name);
  const rows = useMemo(() => {
    if (text) return text.map((line, i) => ({ n: i + 1, text: printable(line.replaceAll("\t", TAB)) }));
    return [...file.lines.keys()].sort((x, y) => x - y).map((n) => ({ n, text: "" }));
  }, [file, text]);
  const hottest = useMemo(() => {
    let most = 0;
    let at = -1;
    rows.forEach(({ n }, i) => {
      const line = file.lines.get(n);
      if (line && line[0] + line[1] / 1e6 > most) {
        most = line[0] + line[1] / 1e6;
        at = i;
      }
    });
    return at;
  }, [rows]);
  const most = Math.max(1, ...[...file.lines.values()].map(([self]) => self));
  const one = (i) => {
    const { n, text: code } = rows[i];
    const [self, total] = file.lines.get(n) ?? [0, 0];
    return (
      <div class="line" key={n} style={{ height: "20px", "--heat-share": self / most }} title={total ? `${number(self)} self, ${number(total)} total` : undefined}>
        <span class="heat">{self ? percent(self / profile.total) : ""}</span>
        <span class="through">{total ? percent(total / profile.total) : ""}</span>
        <span class="n">{n > 0 ? n : "?"}</span>
        <code>{code}</code>
      </div>
    );
  };
  return (
    <div class="code" data-testid="code">
      <div class="line head">
        <span class="heat">Self</span>
        <span class="through">Total</span>
        <span class="n">Line</span>
        <code>{file.name}</code>
      </div>
      {!text && <p class="lead">The text of this file is not in the report: it was not readable, not as it ran, or not among the hottest.</p>}
      <Rows key={file.name} count={rows.length} height={20} render={one} label={file.name} reveal={hottest} />
    </div>
  );
}

export function SourceView({ model }) {
  const { profile, state, set } = model;
  const files = useMemo(() => filesOf(model), [model.lineSums]);
  if (!files.length) return <Note title="Nothing here">No sample that passes the filters has a file.</Note>;
  const file = files.find((f) => f.name === state.file) ?? files[0];
  return (
    <div class="sources" data-testid="sources">
      <nav aria-label="Files">
        {files.slice(0, 200).map((f) => (
          <button key={f.name} class={f === file ? "chosen" : ""} onClick={() => set({ file: f.name })} style={{ "--share": f.self / (profile.total || 1) }}>
            <span class="file">{f.name}</span>
            <small>
              {percent(f.self / (profile.total || 1))}
              {profile.sources.has(f.name) ? "" : ", counts only"}
            </small>
          </button>
        ))}
      </nav>
      <Code profile={profile} file={file} />
    </div>
  );
}
