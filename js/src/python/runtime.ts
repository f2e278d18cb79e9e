/** What the translated modules call `$`. */

export * from "./values.js";
export * from "./methods.js";
export * from "./stdlib.js";
export * as re from "./regex.js";
