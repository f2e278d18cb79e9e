/** The tree of a script. `at` is the word where a node begins, `stop` the word behind it; 0 in nodes that are not quoted. */

export type Expression =
  | { type: "name"; at: number; name: string; stop: number }
  | { type: "constant"; at: number; value: string | number | boolean | null; stop: number }
  | { type: "field"; at: number; value: Expression; name: string; key: number; stop: number }
  | { type: "item"; at: number; value: Expression; key: Expression; stop: number }
  | { type: "length"; at: number; value: Expression; stop: number }
  /** `exact` is false where the last argument may stand for any number of them. */
  | { type: "call"; at: number; function: Expression; arguments: Expression[]; exact: boolean; stop: number }
  | { type: "method"; at: number; value: Expression; name: string; arguments: Expression[]; key: number; stop: number }
  | Record_
  | { type: "function"; at: number; parameters: string[]; body: Statement[]; stop: number }
  | { type: "operation"; at: number; operator: string; left: Expression; right: Expression; stop: number }
  | { type: "other"; at: number; parts: Expression[]; what: string; stop: number };

/** A table as it is written. `exact` is false where there are keys that only the run knows. */
export interface Record_ {
  type: "record";
  at: number;
  entries: [string | null, Expression][];
  exact: boolean;
  isList: boolean;
  stop: number;
}

export type Statement =
  | { type: "block"; at: number; body: Statement[] }
  | { type: "declare"; at: number; names: string[]; values: Expression[] }
  | { type: "assign"; at: number; targets: Expression[]; values: Expression[] }
  | { type: "define"; at: number; target: Expression; function: Expression; local: boolean }
  | { type: "evaluate"; at: number; value: Expression }
  | { type: "return"; at: number; values: Expression[] }
  | { type: "branches"; at: number; branches: [Expression | null, Statement[]][] }
  | { type: "loop"; at: number; condition: Expression | null; body: Statement[] }
  | { type: "count"; at: number; name: string; bounds: Expression[]; body: Statement[] }
  | { type: "each"; at: number; names: string[]; values: Expression[]; body: Statement[] };
