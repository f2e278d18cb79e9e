// What a JSON Schema says, as far as a form and a table of parameters need it.

import { stringify } from "./json.js";

const DEEP = 6;

/** The part of the schema that counts: references followed, `null` beside another type left out. */
export function resolved(part, root, depth = 0) {
  if (!part || typeof part !== "object" || depth > DEEP) return {};
  if (typeof part.$ref === "string") {
    const place = part.$ref.startsWith("#/") ? part.$ref.slice(2).split("/") : [];
    const target = place.reduce((at, name) => (at && typeof at === "object" && Object.hasOwn(at, name) ? at[name] : undefined), root);
    return { ...resolved(target, root, depth + 1), ...without(part, "$ref") };
  }
  for (const key of ["allOf", "anyOf", "oneOf"]) {
    const choices = Array.isArray(part[key]) ? part[key].filter((choice) => choice?.type !== "null") : [];
    if (choices.length === 1) return { ...resolved(choices[0], root, depth + 1), ...without(part, key) };
  }
  const types = Array.isArray(part.type) ? part.type.filter((name) => name !== "null") : [];
  return types.length === 1 ? { ...part, type: types[0] } : part;
}

const without = (part, name) => Object.fromEntries(Object.entries(part).filter(([key]) => key !== name));

/** The type in a few words: string, integer[], "a" | "b", {id: integer, …}. */
export function typeText(given, root, depth = 0) {
  const part = resolved(given, root);
  if (Array.isArray(part.enum)) return part.enum.slice(0, 8).map((item) => stringify(item, { clip: 30 })).join(" | ") + (part.enum.length > 8 ? " | …" : "");
  if ("const" in part) return stringify(part.const, { clip: 30 });
  for (const key of ["anyOf", "oneOf"]) if (Array.isArray(part[key]) && depth < 3) return part[key].slice(0, 5).map((each) => typeText(each, root, depth + 1)).join(" | ");
  if (part.type === "array") return `${depth < 3 ? typeText(part.items ?? {}, root, depth + 1) : "any"}[]`;
  if (part.type === "object" || part.properties) {
    const names = Object.entries(part.properties ?? {});
    if (!names.length || depth > 1) return "object";
    return `{${names.slice(0, 5).map(([name, each]) => `${name}: ${typeText(each, root, depth + 1)}`).join(", ")}${names.length > 5 ? ", …" : ""}}`;
  }
  return typeof part.type === "string" ? part.type : Array.isArray(part.type) ? part.type.join(" | ") : "any";
}

/** [{name, part, type, required, bounds}] of an object's schema. */
export function parameters(schema) {
  const required = Array.isArray(schema.required) ? schema.required : [];
  return Object.entries(schema.properties ?? {}).map(([name, given]) => {
    const part = resolved(given, schema);
    return { name, part, type: typeText(given, schema), required: required.includes(name), bounds: bounds(part) };
  });
}

function bounds(part) {
  const named = [["minimum", "≥"], ["exclusiveMinimum", ">"], ["maximum", "≤"], ["exclusiveMaximum", "<"], ["minLength", "length ≥"], ["maxLength", "length ≤"], ["minItems", "items ≥"], ["maxItems", "items ≤"], ["pattern", "pattern"], ["format", "format"]];
  return named.filter(([key]) => part[key] !== undefined).map(([key, mark]) => `${mark} ${typeof part[key] === "string" ? part[key] : stringify(part[key])}`).join(", ");
}
