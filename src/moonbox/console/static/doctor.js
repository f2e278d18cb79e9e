// The page Doctor: where the machine is still being tried, the page with the result comes when it is there.

import { get } from "./api.js";
import { $ } from "./dom.js";
import { shell } from "./shell.js";

shell();
const next = $("#trying")?.dataset.next;
if (next) {
  const show = () => location.replace(next);
  get("/doctor").then(show, show); // a failure is told there
} else if (location.search) history.replaceState(null, "", location.pathname);
