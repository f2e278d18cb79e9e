// Pages without anything of their own.

import { shell } from "./shell.js";

shell();
