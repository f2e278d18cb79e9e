/** The JSON form of records, which the Python package shares: its fields are in snake_case, those of JavaScript in camelCase. */

/** `maxToolCalls` as `max_tool_calls`. */
export function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** `max_tool_calls` as `maxToolCalls`. */
export function camelCase(name: string): string {
  return name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/** A record with its own fields as the JSON form spells them. */
export function jsonForm(record: object): Record<string, unknown> {
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [snakeCase(name), value]));
}

/** Sets a field of that name; an assignment to `__proto__` would change what the object inherits. */
export function setField(object: Record<string, unknown>, key: string, value: unknown): void {
  if (key === "__proto__") Object.defineProperty(object, key, { value, enumerable: true, writable: true, configurable: true });
  else object[key] = value;
}

/** An object with these fields; `__proto__` is a field like any other. */
export function fromEntries(entries: Iterable<[string | number, unknown]>): Record<string, unknown> {
  const made: Record<string, unknown> = {};
  for (const [key, item] of entries) setField(made, String(key), item);
  return made;
}

/** Data that `JSON.stringify` can write: integers beyond 2^53 are numbers where the engine can write them, else text. */
export function stringifiableData(data: unknown): unknown {
  if (typeof data === "bigint") return ((JSON as unknown as { rawJSON?: (text: string) => unknown }).rawJSON ?? String)(String(data));
  if (Array.isArray(data)) return data.map(stringifiableData);
  if (typeof data !== "object" || data === null || Object.getPrototypeOf(data) !== Object.prototype) return data;
  return fromEntries(Object.entries(data).map(([key, item]) => [key, stringifiableData(item)]));
}
