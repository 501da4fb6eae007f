// SPDX-License-Identifier: Apache-2.0
import { render } from "preact";

import { App } from "./app.jsx";
import { Profile, unpack } from "./profile.js";

const root = document.getElementById("app");

async function start() {
  const profile = new Profile(await unpack(document.getElementById("data").textContent.trim()));
  root.textContent = "";
  render(<App profile={profile} />, root);
}

start().catch((error) => {
  root.textContent = `This report cannot be shown: ${error.message}.`;
  throw error;
});
