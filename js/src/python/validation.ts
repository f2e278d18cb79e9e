/** moonbox.schema.bounds and moonbox.schema.validation: schemas to compare values with, and what that may cost. */

import { roles, ROLES } from "#python/schema/tree.js";
import { Effort, TooMuchEffort } from "../tools/effort.js";
import type { SchemaObject } from "../tools/document.js";
import { Validator as Judge } from "../tools/validation.js";
import { Exception_, lowered } from "./values.js";

/* eslint-disable @typescript-eslint/no-explicit-any */
type Any = any;

const MOST_EFFORT = 1_000_000; // looks at one value
const LONGEST_WAY = 200;

export { TooMuchEffort as TooCostly };
export class Invalid extends Exception_ {
  readonly where = "";
}

/** Comparing one call's arguments costs one effort, which `begin` renews. */
export class Validator {
  private made: Judge | null = null;
  private effort = new Effort();

  constructor(private readonly root: Any) {}

  begin(): void {
    this.effort = new Effort();
  }

  check(): void {
    let effort;
    try {
      effort = effortOf(this.root, new Map(), new Set());
    } catch (problem) {
      if (problem instanceof RangeError) throw new TooMuchEffort("its schema has a chain of references that is too long");
      throw problem;
    }
    if (effort > MOST_EFFORT) throw new TooMuchEffort("its schema nests too many alternatives within alternatives");
    this.judge();
  }

  is_valid(value: unknown): boolean {
    return this.judge().isValid(value, this.effort);
  }

  /** Whether a value fits one keyword of the schema. */
  fits(rule: unknown, value: unknown): boolean {
    return this.judge().isValid(lowered(value), this.effort, lowered(rule) as SchemaObject);
  }

  /** Whether a value fits a part of the schema. */
  takes(schema: unknown, value: unknown): boolean {
    return this.fits(schema, value);
  }

  private judge(): Judge {
    if (this.made !== null) return this.made;
    try {
      return (this.made = new Judge(lowered(this.root.schema) as SchemaObject));
    } catch (problem) {
      throw problem instanceof SyntaxError ? new Invalid(problem.message) : problem;
    }
  }
}

/** How often a validator may look at one value, at worst; throws RangeError where references lead too far. */
function effortOf(given: Any, known: Map<unknown, number>, open: Set<unknown>): number {
  const node = given.target;
  if (!(typeof node.schema === "object" && node.schema !== null) || open.has(node)) return 1;
  const before = known.get(node);
  if (before !== undefined) return before;
  if (open.size > LONGEST_WAY) throw new RangeError("references lead too far");
  open.add(node);
  let [same, deepest] = [1, 0];
  for (const [keyword, part] of roles(node.says)) {
    const role = ROLES.get(keyword);
    if (role === "definition") continue;
    const effort = effortOf(node.tree.node(part), known, open);
    if (role === "inside") deepest = Math.max(deepest, effort);
    else same += effort;
  }
  open.delete(node);
  known.set(node, same + deepest);
  return same + deepest;
}
