// Transforms JSON with a list of steps, each applied to the result of the previous one.
//
// Paths: names with dots, [n] for an item, ["any name"] for names with other characters:
// orders[0].lines["unit price"].

type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
type Key = string | number;

interface Condition {
  path: string;
  op: "eq" | "ne" | "gt" | "gte" | "lt" | "lte" | "contains" | "in" | "exists";
  value?: Json;
}

interface Step {
  op: "get" | "pick" | "omit" | "rename" | "set" | "map" | "filter" | "merge" | "flatten" | "sort";
  path?: string;
  paths?: string[];
  names?: Record<string, string>;
  value?: Json;
  steps?: Step[];
  where?: Condition[];
  with?: Json;
  deep?: boolean;
  depth?: number;
  separator?: string;
  by?: string;
  order?: "asc" | "desc";
}

interface Input {
  data: Json;
  steps: Step[];
}

const MAX_DEPTH = 100;

function parsePath(path: string): Key[] {
  const keys: Key[] = [];
  const pattern = /(?:^|\.)([^.[\]"]+)|\[(\d+)\]|\["((?:[^"\\]|\\.)*)"\]/y;
  let at = 0;
  while (at < path.length) {
    pattern.lastIndex = at;
    const match = pattern.exec(path);
    if (match === null) {
      throw new Error(`The path ${JSON.stringify(path)} is malformed at position ${at + 1}`);
    }
    const [text, name, index, quoted] = match;
    keys.push(name ?? (index !== undefined ? Number(index) : JSON.parse(`"${quoted}"`)));
    at += text.length;
  }
  return keys;
}

function isObject(value: Json | undefined): value is { [name: string]: Json } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function child(value: Json | undefined, key: Key): Json | undefined {
  if (Array.isArray(value)) {
    return typeof key === "number" ? value[key] : undefined;
  }
  return isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined;
}

function read(value: Json | undefined, keys: Key[]): Json | undefined {
  return keys.reduce<Json | undefined>(child, value);
}

/** Sets an own property of any name (an assignment to __proto__ would not). */
function put(object: { [name: string]: Json }, name: Key, value: Json): void {
  Object.defineProperty(object, name, { value, writable: true, enumerable: true, configurable: true });
}

/** Returns a copy with `replacement` at `keys`; creates missing objects and arrays on the path. */
function write(value: Json | undefined, keys: Key[], replacement: Json): Json {
  if (keys.length === 0) {
    return replacement;
  }
  const [key, ...rest] = keys;
  const inner = write(child(value, key), rest, replacement);
  if (typeof key === "number") {
    const items = Array.isArray(value) ? [...value] : [];
    if (key > items.length) {
      throw new Error(`The index ${key} is past the end of an array of ${items.length} items`);
    }
    items[key] = inner;
    return items;
  }
  const object = isObject(value) ? { ...value } : {};
  put(object, key, inner);
  return object;
}

function remove(value: Json, keys: Key[]): Json {
  const [key, ...rest] = keys;
  const inner = child(value, key);
  if (inner === undefined) {
    return value;
  }
  if (rest.length > 0) {
    return write(value, [key], remove(inner, rest));
  }
  if (Array.isArray(value)) {
    return value.filter((_, index) => index !== key);
  }
  const object = { ...(value as { [name: string]: Json }) };
  delete object[key as string];
  return object;
}

/** Whether two JSON values are equal, regardless of member order. */
function equal(a: Json | undefined, b: Json | undefined): boolean {
  if (Array.isArray(a) && Array.isArray(b)) {
    return a.length === b.length && a.every((item, index) => equal(item, b[index]));
  }
  if (isObject(a) && isObject(b)) {
    const names = Object.keys(a);
    return names.length === Object.keys(b).length && names.every((name) => Object.hasOwn(b, name) && equal(a[name], b[name]));
  }
  return a === b;
}

/** Negative, zero or positive; `undefined` for values that cannot be compared. */
function compare(a: Json | undefined, b: Json | undefined): number | undefined {
  if (typeof a === "number" && typeof b === "number") {
    return a - b;
  }
  if (typeof a === "string" && typeof b === "string") {
    return a < b ? -1 : a > b ? 1 : 0;
  }
  return undefined;
}

function holds(item: Json, condition: Condition): boolean {
  const value = read(item, parsePath(condition.path));
  const wanted = condition.value;
  const order = compare(value, wanted);
  switch (condition.op) {
    case "eq":
      return equal(value, wanted);
    case "ne":
      return !equal(value, wanted);
    case "gt":
      return order !== undefined && order > 0;
    case "gte":
      return order !== undefined && order >= 0;
    case "lt":
      return order !== undefined && order < 0;
    case "lte":
      return order !== undefined && order <= 0;
    case "contains":
      return typeof value === "string" && typeof wanted === "string"
        ? value.includes(wanted)
        : Array.isArray(value) && value.some((entry) => equal(entry, wanted));
    case "in":
      return Array.isArray(wanted) && wanted.some((entry) => equal(entry, value));
    case "exists":
      return (value !== undefined) === (wanted ?? true);
  }
}

function merge(into: Json | undefined, from: Json, deep: boolean): Json {
  if (!isObject(into) || !isObject(from)) {
    return from;
  }
  const merged = { ...into };
  for (const [name, value] of Object.entries(from)) {
    put(merged, name, deep && Object.hasOwn(merged, name) ? merge(merged[name], value, true) : value);
  }
  return merged;
}

function flattenObject(object: { [name: string]: Json }, separator: string, depth: number): Json {
  const flat: { [name: string]: Json } = {};
  const visit = (value: { [name: string]: Json }, prefix: string, left: number): void => {
    for (const [name, inner] of Object.entries(value)) {
      if (isObject(inner) && left > 0 && Object.keys(inner).length > 0) {
        visit(inner, prefix + name + separator, left - 1);
      } else {
        put(flat, prefix + name, inner);
      }
    }
  };
  visit(object, "", depth);
  return flat;
}

function items(value: Json, step: Step): Json[] {
  if (!Array.isArray(value)) {
    throw new Error(`${step.op} needs an array, found ${value === null ? "null" : typeof value}`);
  }
  return value;
}

/** Applies a step to the value at its path. */
function applyHere(value: Json, step: Step, depth: number): Json {
  switch (step.op) {
    case "get": {
      return value;
    }
    case "pick":
      return (step.paths ?? []).reduce<Json>((picked, path) => {
        const keys = parsePath(path);
        const found = read(value, keys);
        return found === undefined ? picked : write(picked, keys, found);
      }, {});
    case "omit":
      return (step.paths ?? []).reduce<Json>((left, path) => remove(left, parsePath(path)), value);
    case "rename":
      return Object.entries(step.names ?? {}).reduce<Json>((renamed, [from, to]) => {
        const keys = parsePath(from);
        const found = read(renamed, keys);
        return found === undefined ? renamed : write(remove(renamed, keys), parsePath(to), found);
      }, value);
    case "set":
      return step.value ?? null;
    case "map":
      return items(value, step).map((item) => run(item, step.steps ?? [], depth + 1));
    case "filter":
      return items(value, step).filter((item) => (step.where ?? []).every((condition) => holds(item, condition)));
    case "merge":
      return merge(value, step.with ?? {}, step.deep ?? false);
    case "flatten":
      return Array.isArray(value)
        ? ((value as unknown[]).flat(step.depth ?? 1) as Json)
        : isObject(value)
          ? flattenObject(value, step.separator ?? ".", step.depth ?? MAX_DEPTH)
          : value;
    case "sort": {
      const keys = parsePath(step.by ?? "");
      const sign = step.order === "desc" ? -1 : 1;
      return [...items(value, step)].sort((a, b) => {
        const [left, right] = [read(a, keys), read(b, keys)];
        // Values that cannot be compared (missing, of different types) go to the end, in their
        // order.
        return (
          sign * (compare(left, right) ?? 0) ||
          Number(left === undefined || left === null) - Number(right === undefined || right === null)
        );
      });
    }
  }
}

function run(data: Json, steps: Step[], depth: number): Json {
  if (depth > MAX_DEPTH) {
    throw new Error(`Steps are nested deeper than ${MAX_DEPTH} levels`);
  }
  return steps.reduce<Json>((value, step, index) => {
    try {
      const keys = parsePath(step.path ?? "");
      if (step.op === "get") {
        return read(value, keys) ?? null;
      }
      if (keys.length === 0) {
        return applyHere(value, step, depth);
      }
      const found = read(value, keys);
      if (found === undefined && step.op !== "set" && step.op !== "merge") {
        throw new Error(`there is nothing at ${JSON.stringify(step.path)}`);
      }
      return write(value, keys, applyHere(found ?? {}, step, depth));
    } catch (error) {
      throw new Error(`steps[${index}] (${step.op}): ${error instanceof Error ? error.message : String(error)}`);
    }
  }, data);
}

export async function execute(input: Input): Promise<{ result: Json }> {
  return { result: run(input.data, input.steps, 0) };
}
