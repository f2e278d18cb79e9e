/** The form in which a tool gives its items page by page, as its parameters show it. */

import { pagingNames } from "../languages.js";
import { isObject } from "../values.js";
import type { Document, Schema } from "./document.js";
import type { Tool } from "./tool.js";

/** The part of each parameter (`cursor`, `page`, `offset`, `limit`) and its name. */
export type PagingForm = Record<string, string>;

/** The parameters that a tool is paged with; null when it is not paged. */
export function pagingForm(tool: Tool): PagingForm | null {
  const { parameters, only_with_limit } = pagingNames;
  const document = tool.document;
  const named = document.properties(document.root);
  const limit = parameters["limit"]!.find((name) => Object.hasOwn(named, name));
  const form: PagingForm = {};
  for (const part of ["cursor", "page", "offset"]) {
    const names = [...parameters[part]!, ...(limit === undefined ? [] : (only_with_limit[part] ?? []))];
    const name = names.find((each) => Object.hasOwn(named, each) && fits(part, named[each], document));
    if (name !== undefined) form[part] = name;
  }
  if (Object.keys(form).length === 0 || (isObject(tool.returns) && tool.returns["type"] === "string")) return null;
  return limit === undefined ? form : { ...form, limit };
}

/** Whether a parameter can be that part: pages and offsets are numbers. */
function fits(part: string, schema: Schema, document: Document): boolean {
  if (part === "cursor") return true;
  const kinds = document.kinds(schema);
  return kinds !== null && (kinds.has("integer") || kinds.has("number"));
}
