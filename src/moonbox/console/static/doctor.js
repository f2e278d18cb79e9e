// The page Doctor: where the machine is still being tried, the page that waits for the result comes next.

import { $ } from "./dom.js";
import { shell } from "./shell.js";

shell();
const next = $("#trying")?.dataset.next;
if (next) location.replace(next);
else if (location.search) history.replaceState(null, "", location.pathname);
