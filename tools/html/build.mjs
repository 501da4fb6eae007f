// SPDX-License-Identifier: Apache-2.0
// Makes the report's page of src/: one HTML file with its style, its program and their licences in it, and a place for
// the data. Usage: node build.mjs FILE
import { createHash } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = path.dirname(fileURLToPath(import.meta.url));
const target = process.argv[2];
if (!target) throw new Error("usage: node build.mjs FILE");

const options = {
  absWorkingDir: here,
  bundle: true,
  minify: true,
  write: false,
  legalComments: "none",
  metafile: true,
  charset: "ascii",
  target: ["chrome111", "firefox113", "safari16.4"], // the first with DecompressionStream and oklch()
  jsx: "automatic",
  jsxImportSource: "preact",
};
const script = await build({ ...options, entryPoints: ["src/main.jsx"], format: "iife" });
const style = await build({ ...options, entryPoints: ["src/style.css"] });

// The licence of each package that the bundle has code of.
function licences(metafile) {
  const names = new Set();
  for (const [file, { bytesInOutput }] of Object.entries(Object.values(metafile.outputs)[0].inputs)) {
    const found = /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(file);
    if (found && bytesInOutput) names.add(found[1]);
  }
  return [...names].sort().map((name) => {
    const folder = path.join(here, "node_modules", name);
    const { version, license } = JSON.parse(readFileSync(path.join(folder, "package.json"), "utf8"));
    const file = ["LICENSE", "LICENSE.md", "LICENSE.txt"].map((f) => path.join(folder, f)).find(existsSync);
    if (!file) throw new Error(`${name} has no licence file`);
    return `${name} ${version} (${license})\n\n${readFileSync(file, "utf8").trim()}`;
  });
}

const js = script.outputFiles[0].text.trim();
const css = style.outputFiles[0].text.trim();
if (/<\/(script|style)|<!--/i.test(js + css)) throw new Error("the bundle would end its own element");
const notices = licences(script.metafile).join("\n\n");
if (notices.includes("-->")) throw new Error("a licence would end the comment that it stands in");

const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
const page = readFileSync(path.join(here, "src/page.html"), "utf8");
const parts = {
  NOTICES: notices,
  POLICY: `default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:; script-src ${hash(js)}; style-src ${hash(css)}`,
  STYLE: css,
  SCRIPT: js,
};
writeFileSync(path.resolve(target), page.replace(/@(NOTICES|POLICY|STYLE|SCRIPT)@/g, (_, name) => parts[name]));
