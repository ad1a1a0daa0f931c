// The tool's result as JSON text. Values that JSON would change or drop silently are refused, with
// their path.
import { primordials } from "ext:core/mod.js";

const {
  ArrayBufferIsView,
  ArrayBufferPrototype,
  ArrayIsArray,
  ArrayPrototype,
  BooleanPrototype,
  DatePrototype,
  ErrorPrototype,
  JSONStringify,
  MapPrototype,
  NumberIsFinite,
  NumberPrototype,
  ObjectGetPrototypeOf,
  ObjectKeys,
  ObjectPrototype,
  ObjectPrototypeIsPrototypeOf,
  PromisePrototype,
  RegExpPrototype,
  RegExpPrototypeExec,
  SafeRegExp,
  SafeWeakSet,
  SetPrototype,
  StringPrototype,
  StringPrototypeIncludes,
  StringPrototypeIsWellFormed,
  WeakMapPrototype,
  WeakSetPrototype,
} = primordials;

const NO_JSON = [
  [MapPrototype, "a Map", "Object.fromEntries(map)"],
  [SetPrototype, "a Set", "Array.from(set)"],
  [WeakMapPrototype, "a WeakMap", "an object"],
  [WeakSetPrototype, "a WeakSet", "an array"],
  [PromisePrototype, "a Promise", "its value: await it"],
  [ErrorPrototype, "an Error", "its message, or throw it"],
  [RegExpPrototype, "a RegExp", "its source"],
  [ArrayBufferPrototype, "an ArrayBuffer", "base64 text"],
];
/** Objects that JSON converts to their value. */
const BOXED = [NumberPrototype, StringPrototype, BooleanPrototype];
/**
 * Limit on nested objects and arrays. The record around the result adds some levels, and its
 * readers accept 127.
 */
const MAX_DEPTH = 100;
const IDENTIFIER = new SafeRegExp(/^[A-Za-z_$][\w$]*$/);

/** Results that JSON cannot represent, thrown as `{message, path}`. */
const invalid = new SafeWeakSet();

function refuse(message, path) {
  const error = { __proto__: null, message, path };
  invalid.add(error);
  throw error;
}

/** Whether `stringify` threw this. */
function isInvalid(thrown) {
  return invalid.has(thrown);
}

function stepText(step) {
  if (step === "") return "";
  if (typeof step === "number") return `[${step}]`;
  return RegExpPrototypeExec(IDENTIFIER, step) ? `.${step}` : `[${JSONStringify(step)}]`;
}

/** The path from the result to the member `step` of the innermost object. */
function pathTo(inner, step) {
  let path = stepText(step);
  for (let at = inner; at !== null; at = at.outer) path = stepText(at.step) + path;
  return `$${path}`;
}

function badText(text) {
  if (!StringPrototypeIsWellFormed(text)) return "a lone surrogate (half of a character) is not valid JSON; use text.toWellFormed()";
  return StringPrototypeIncludes(text, "\0") ? "the character U+0000 cannot be stored in a record; remove it" : null;
}

/** Whether JSON would lose everything in an object. */
function isHollow(value) {
  if (ArrayIsArray(value) || ObjectKeys(value).length > 0 || typeof value.toJSON === "function") return false;
  for (let i = 0; i < BOXED.length; i++) {
    if (ObjectPrototypeIsPrototypeOf(BOXED[i], value)) return false;
  }
  return true;
}

function refusal(value, inArray, isTop) {
  switch (typeof value) {
    case "string":
      return badText(value);
    case "undefined":
      if (isTop) return "execute returned undefined; return null when there is no result";
      return inArray ? "undefined in an array is not valid JSON; use null" : null;
    case "function":
      return "a function is not valid JSON";
    case "symbol":
      return "a symbol is not valid JSON";
    case "bigint":
      return "a BigInt is not valid JSON; use a number or String(value)";
    case "number":
      return NumberIsFinite(value) ? null : `${value} is not valid JSON; use null or a string`;
    case "object": {
      if (value === null) return null;
      const prototype = ObjectGetPrototypeOf(value);
      if (prototype === ObjectPrototype || prototype === ArrayPrototype || prototype === null) return null;
      for (let i = 0; i < NO_JSON.length; i++) {
        const { 0: kind, 1: name, 2: instead } = NO_JSON[i];
        if (ObjectPrototypeIsPrototypeOf(kind, value)) return `${name} is not valid JSON; return ${instead}`;
      }
      if (ArrayBufferIsView(value)) return "bytes are not valid JSON; return an array of numbers or base64 text";
      return isHollow(value) ? "an object of a class without own properties is not valid JSON; return a plain object" : null;
    }
    default:
      return null;
  }
}

/**
 * JSON text of `result`. Throws what `isInvalid` recognizes, or what a getter or toJSON of the tool
 * throws.
 */
function stringify(result) {
  // A linked list of the objects being visited, innermost first, each with the step that led to it.
  // Not an array: a tool may have defined setters for array elements.
  let inner = null;
  return JSONStringify(result, function (key, value) {
    while (inner !== null && inner.object !== this) inner = inner.outer;
    const isTop = inner === null;
    const inArray = !isTop && ArrayIsArray(this);
    const step = inArray ? +key : key;
    let why = typeof step === "string" ? badText(step) : null;
    why ??= refusal(value, inArray, isTop);
    // toJSON has already turned it into null.
    if (value === null && ObjectPrototypeIsPrototypeOf(DatePrototype, this[key])) why = "an invalid Date is not valid JSON";
    if (why !== null) refuse(why, pathTo(inner, step));
    if (typeof value === "object" && value !== null) {
      const depth = isTop ? 1 : inner.depth + 1;
      if (depth > MAX_DEPTH) {
        refuse(`nested too deeply: at most ${MAX_DEPTH} levels of objects and arrays`, pathTo(inner, step));
      }
      for (let at = inner; at !== null; at = at.outer) {
        if (at.object === value) refuse("a cycle is not valid JSON", pathTo(inner, step));
      }
      // JSON.stringify starts with its own holder object, so the path starts with the first value.
      inner = { __proto__: null, object: value, step, outer: inner, depth };
    }
    return value;
  });
}

export { isInvalid, stringify };
