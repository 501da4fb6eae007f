// SPDX-License-Identifier: Apache-2.0
// Colours of Python's source: each line as [kind, text] pieces; kind is "" or that of a style.

const KEYWORDS = new Set(
  (
    "False None True and as assert async await break case class continue def del elif else except finally for from global " +
    "if import in is lambda match nonlocal not or pass raise return try type while with yield"
  ).split(" "),
);
const SOFT = new Set(["case", "match", "type"]); // keywords at the beginning of a statement only
const TOKEN = /(#.*)|([rbuft]{0,2}(?:"""|'''|"|'))|([\p{L}_][\p{L}\p{N}_]*)|(\d[\w.]*)|(\s+|.)/iuy;
const LONGEST = 2000; // letters of a line that is coloured

export function coloured(lines) {
  let open = ""; // quotes of a string that began on a line before
  return lines.map((line) => {
    const pieces = [];
    const push = (kind, text) => {
      const last = pieces[pieces.length - 1];
      if (last && last[0] === kind) last[1] += text;
      else if (text) pieces.push([kind, text]);
    };
    // Takes the rest of a string from there on; returns where it ends.
    const string = (from, quotes) => {
      let at = from;
      while (at < line.length && !line.startsWith(quotes, at)) at += line[at] === "\\" ? 2 : 1;
      const closed = at < line.length;
      open = closed || quotes.length === 1 ? "" : quotes;
      return Math.min(line.length, closed ? at + quotes.length : at);
    };
    let at = 0;
    if (open) {
      at = string(0, open);
      push("string", line.slice(0, at));
    }
    if (line.length > LONGEST) return [...pieces, ["", line.slice(at)]];
    let named = false; // the next word is the name of what is defined
    while (at < line.length) {
      TOKEN.lastIndex = at;
      const [text, comment, quotes, word, digits] = TOKEN.exec(line);
      const begin = at;
      at += text.length;
      if (comment) push("comment", text);
      else if (quotes) {
        at = string(at, quotes.replace(/^[a-z]+/i, ""));
        push("string", line.slice(begin, at));
      } else if (word) {
        const soft = SOFT.has(word) && (line.slice(0, begin).trim() || !/^\s+[^\s=:.,)]/.test(line.slice(at)));
        const keyword = KEYWORDS.has(word) && !soft && line[begin - 1] !== ".";
        push(named ? "defined" : keyword ? "keyword" : "", text);
        named = keyword && (word === "def" || word === "class");
      } else push(digits ? "number" : "", text);
    }
    return pieces;
  });
}
