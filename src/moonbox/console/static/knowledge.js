// The page Knowledge: nothing but the keys; the search is a form.

import { $$ } from "./dom.js";
import { key } from "./keys.js";
import { shell } from "./shell.js";

function move(step) {
  const links = $$(".hit summary");
  const now = links.indexOf(document.activeElement);
  links[Math.max(0, Math.min(links.length - 1, now + step))]?.focus();
}
key("j", "Next hit", () => move(+1));
key("k", "Previous hit", () => move(-1));
shell();
