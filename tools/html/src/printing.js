// SPDX-License-Identifier: Apache-2.0
// Whether the page is being printed: then it is light, and graphs and lists are whole.

import { options } from "preact";
import { useLayoutEffect, useState } from "preact/hooks";

const listeners = new Set();
let printing = false;

function tell(now) {
  if (now === printing) return;
  printing = now;
  const before = options.debounceRendering;
  options.debounceRendering = (render) => render(); // the browser prints what is there when its event has been told
  for (const listener of [...listeners]) listener(now);
  options.debounceRendering = before;
}

addEventListener("beforeprint", () => tell(true));
addEventListener("afterprint", () => tell(false));

export function usePrinting() {
  const [now, setNow] = useState(printing);
  useLayoutEffect(() => {
    listeners.add(setNow);
    return () => listeners.delete(setNow);
  }, []);
  return now;
}
