/** moonbox.languages.tables: the data files of the languages. */

import { tables } from "../languages.js";

export function table(path: string): Record<string, unknown> {
  return tables[path]!;
}
