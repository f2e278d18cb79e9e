/** The form in which a tool gives its items page by page. */

import { paging_form } from "#python/tools/paging.js";
import type { Tool } from "./tool.js";

/** The part of each parameter (`cursor`, `page`, `offset`, `limit`) and its name. */
export type PagingForm = Record<string, string>;

/** The parameters that a tool is paged with; null when it is not paged. */
export function pagingForm(tool: Tool): PagingForm | null {
  const form: Map<string, string> | null = paging_form(tool.view);
  return form === null ? null : Object.fromEntries(form);
}
