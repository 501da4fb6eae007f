// SPDX-License-Identifier: Apache-2.0
// What make bench asks the page: window.pybpf.drawn_ms, from the page's opening to its first drawing, and
// timeSearch(text), milliseconds from typing to the result.

const RESULT = "[data-testid=matched] b";

const frame = () => new Promise((next) => requestAnimationFrame(next));

async function timeSearch(text) {
  const box = document.querySelector("input[type=search]");
  const begin = performance.now();
  box.value = text;
  box.dispatchEvent(new Event("input", { bubbles: true }));
  while (!document.querySelector(RESULT)) await frame();
  await frame();
  return performance.now() - begin;
}

const pybpf = (window.pybpf = { drawn_ms: 0, timeSearch });

export function drawn() {
  pybpf.drawn_ms ||= performance.now();
}
