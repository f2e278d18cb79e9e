/** Binding: a call's arguments, named or positional, made into one validated object, as the Python package does. */

import * as python from "#python/tools/binding.js";
import type { ArgumentError } from "../errors.js";
import { lowered } from "../python/values.js";
import type { SchemaObject } from "./document.js";

/** Everything about a tool's parameters that is worked out once and used for every call. */
export class Binder {
  /** The same as the translated modules have it. */
  readonly own;
  readonly order: string[];

  /** Throws ToolDefinitionError where the schema is not valid, or validating takes too long. */
  constructor(parameters: SchemaObject) {
    this.own = new python.Binder(parameters);
    this.own.check();
    this.order = [...this.own.order];
  }

  /** What the parameters have to fit. */
  get accepted() {
    return this.own.accepted;
  }

  /** An object with defaults filled in that fits the schema; throws ArgumentError with every problem. */
  bind(given: unknown, tool: string, firstIndex = 0, isJsonCall = false): SchemaObject {
    this.own.validator.begin();
    return lowered(this.own.bind(given, tool, firstIndex, isJsonCall)) as SchemaObject;
  }

  /** The arguments by the names of their parameters, valid or not; what cannot be named keeps its position as its key. */
  named(given: unknown, tool: string): unknown {
    return lowered(this.own.named(given, tool));
  }

  /** What a caller is told of invalid arguments. */
  error(problems: string[], tool: string): ArgumentError {
    return this.own.error(problems, tool);
  }
}
