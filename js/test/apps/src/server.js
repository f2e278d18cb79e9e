import { story } from "./story.js";

story().then((told) => console.log(JSON.stringify(told)));
