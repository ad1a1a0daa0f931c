// The tool's result as JSON text. What JSON would change or drop in silence is refused, with the place where it stands.
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
/** Objects that JSON turns into what they hold. */
const BOXED = [NumberPrototype, StringPrototype, BooleanPrototype];
/** Objects and arrays around a value. The record around the result adds some, and its readers take 127. */
const MAX_DEPTH = 100;
const IDENTIFIER = new SafeRegExp(/^[A-Za-z_$][\w$]*$/);

/** Results that JSON cannot carry, thrown as `{message, path}`. */
const invalid = new SafeWeakSet();

function refuse(message, path) {
  const error = { __proto__: null, message, path };
  invalid.add(error);
  throw error;
}

/** Whether `stringify` threw this, whatever it is. */
function isInvalid(thrown) {
  return invalid.has(thrown);
}

function stepText(step) {
  if (step === "") return "";
  if (typeof step === "number") return `[${step}]`;
  return RegExpPrototypeExec(IDENTIFIER, step) ? `.${step}` : `[${JSONStringify(step)}]`;
}

/** The way from the result to the member `step` of the innermost object. */
function pathTo(inner, step) {
  let path = stepText(step);
  for (let at = inner; at !== null; at = at.outer) path = stepText(at.step) + path;
  return `$${path}`;
}

function badText(text) {
  if (!StringPrototypeIsWellFormed(text)) return "half a character (a lone surrogate) is no JSON; use text.toWellFormed()";
  return StringPrototypeIncludes(text, "\0") ? "the character U+0000 cannot be kept in a record; leave it out" : null;
}

/** An object of which JSON would leave nothing. */
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
      return inArray ? "undefined in an array is no JSON; use null" : null;
    case "function":
      return "a function is no JSON";
    case "symbol":
      return "a symbol is no JSON";
    case "bigint":
      return "a BigInt is no JSON; use a number or String(value)";
    case "number":
      return NumberIsFinite(value) ? null : `${value} is no JSON; use null or a string`;
    case "object": {
      if (value === null) return null;
      const prototype = ObjectGetPrototypeOf(value);
      if (prototype === ObjectPrototype || prototype === ArrayPrototype || prototype === null) return null;
      for (let i = 0; i < NO_JSON.length; i++) {
        const { 0: kind, 1: name, 2: instead } = NO_JSON[i];
        if (ObjectPrototypeIsPrototypeOf(kind, value)) return `${name} is no JSON; return ${instead}`;
      }
      if (ArrayBufferIsView(value)) return "bytes are no JSON; return an array of numbers or base64 text";
      return isHollow(value) ? "an object of a class, without members of its own, is no JSON; return a plain object" : null;
    }
    default:
      return null;
  }
}

/** JSON text of `result`; throws what `isInvalid` knows, or what a getter or toJSON of the tool throws. */
function stringify(result) {
  // The object whose members are being visited, the step that led to it, and so on outwards. No array: a tool may have
  // put setters where an array would keep them.
  let inner = null;
  return JSONStringify(result, function (key, value) {
    while (inner !== null && inner.object !== this) inner = inner.outer;
    const isTop = inner === null;
    const inArray = !isTop && ArrayIsArray(this);
    const step = inArray ? +key : key;
    let why = typeof step === "string" ? badText(step) : null;
    why ??= refusal(value, inArray, isTop);
    // By now toJSON has made null of it.
    if (value === null && ObjectPrototypeIsPrototypeOf(DatePrototype, this[key])) why = "an invalid Date is no JSON";
    if (why !== null) refuse(why, pathTo(inner, step));
    if (typeof value === "object" && value !== null) {
      const depth = isTop ? 1 : inner.depth + 1;
      if (depth > MAX_DEPTH) {
        refuse(`nested too deeply: at most ${MAX_DEPTH} objects and arrays in each other`, pathTo(inner, step));
      }
      for (let at = inner; at !== null; at = at.outer) {
        if (at.object === value) refuse("a cycle is no JSON", pathTo(inner, step));
      }
      // JSON.stringify starts with a holder of its own; the first value's members come under the value itself.
      inner = { __proto__: null, object: value, step, outer: inner, depth };
    }
    return value;
  });
}

export { isInvalid, stringify };
