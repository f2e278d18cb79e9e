import { story } from "./story.js";

globalThis.told = story().catch((problem) => String(problem.stack ?? problem));
