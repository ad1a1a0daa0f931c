// Lets calls follow each other in one realm. `harden` makes everything that two calls can both
// reach unchangeable, except for the global object; `clean` compares that and the few inner states
// that no freezing covers. docs/design/sandbox.md says why this is enough.
import { core, primordials } from "ext:core/mod.js";
import { reset } from "ext:sandbox/console.js";
import { makeContext } from "ext:sandbox/context.js";

const {
  ArrayPrototypePop,
  ArrayPrototypePush,
  ObjectDefineProperty,
  ObjectFreeze,
  ObjectHasOwn,
  ObjectIs,
  ReflectApply,
  ReflectDefineProperty,
  ReflectDeleteProperty,
  ReflectGetOwnPropertyDescriptor,
  ReflectGetPrototypeOf,
  ReflectIsExtensible,
  ReflectOwnKeys,
  RegExpPrototypeExec,
  SafeSet,
  String,
  TypeError,
  uncurryThis,
} = primordials;
const { eventTargetData } = core.loadExtScript("ext:deno_web/02_event.js");
const { performance, Performance } = core.loadExtScript("ext:deno_web/15_performance.js");
const clearMarks = uncurryThis(Performance.prototype.clearMarks);
const clearMeasures = uncurryThis(Performance.prototype.clearMeasures);
// Not a SafeRegExp: the last match of a subclass need not count.
const NOTHING = /(?:)/;

/** More properties than this on the global object are not removed one by one. */
const MAX_ADDED = 1000;

/** The call used something that the host cannot end or take back. */
let isSpent = false;
/** The global object's own properties, in order, and its other states. */
let baseline;

/** Marks the realm as spent when this method is called. */
function spends(object, key) {
  const found = ReflectGetOwnPropertyDescriptor(object, key);
  if (found === undefined) return;
  const { value: original } = found;
  const watched = {
    [key](...args) {
      isSpent = true;
      return ReflectApply(original, this, args);
    },
  }[key];
  ObjectDefineProperty(watched, "length", { __proto__: null, value: original.length });
  ObjectDefineProperty(object, key, { __proto__: null, value: watched });
}

/**
 * Properties that objects of a tool often have too. An assignment to an object cannot replace an
 * unchangeable property that it inherits, so these become accessors that allow it. `constructor` is
 * not among them: the console and the engine read it as data.
 */
function overridden() {
  const errors = ["Error", "EvalError", "RangeError", "ReferenceError", "SyntaxError", "TypeError", "URIError", "AggregateError", "SuppressedError"];
  const found = [
    [Array.prototype, ["toString"]],
    [Function.prototype, ["toString"]],
    [Object.prototype, ["hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable", "toLocaleString", "toString", "valueOf"]],
  ];
  for (let i = 0; i < errors.length; i++) {
    const prototype = globalThis[errors[i]]?.prototype;
    if (prototype !== undefined) ArrayPrototypePush(found, [prototype, ["message", "name", "toString"]]);
  }
  return found;
}

function allowOverride(object, key) {
  const found = ReflectGetOwnPropertyDescriptor(object, key);
  if (found === undefined || !ObjectHasOwn(found, "value") || !found.configurable) return;
  const { value } = found;
  const accessor = {
    get [key]() {
      return value;
    },
    set [key](assigned) {
      const isOther = (typeof this === "object" || typeof this === "function") && this !== null && this !== object;
      const own = { __proto__: null, value: assigned, writable: true, enumerable: true, configurable: true };
      if (!isOther || !ReflectDefineProperty(this, key, own)) {
        throw new TypeError(`Cannot assign to read only property '${String(key)}' of object`);
      }
    },
  };
  const { get, set } = ReflectGetOwnPropertyDescriptor(accessor, key);
  ObjectDefineProperty(object, key, { __proto__: null, get, set, enumerable: found.enumerable });
}

function thrownBy(act) {
  try {
    return act();
  } catch (error) {
    return error;
  }
}

/** Objects that calls share and that the global object's properties do not lead to. */
function shared() {
  return [globalThis, crypto, crypto.subtle, performance, makeContext('{"request":{"id":""},"secrets":{}}')];
}

/** One object for each kind whose inner functions or prototype no global name leads to. */
function samples() {
  const { port1, port2 } = new MessageChannel();
  port1.close();
  port2.close();
  const kinds = [
    function () {}, async function () {}, function* () {}, async function* () {},
    (function () { return arguments; })(),
    [].values(), "".matchAll(/x/g), ""[Symbol.iterator](), new Map().keys(), new Set().keys(),
    new Error("sample"), thrownBy(() => null.x), thrownBy(() => new URL("no")), new DOMException("m", "n"),
    new Event("e"), new EventTarget(), new CustomEvent("e"), new MessageEvent("e"), new ErrorEvent("e"),
    new AbortController(), new Blob([]), new FileReader(), new FormData(), new FormData().keys(),
    new Headers(), new Headers().keys(), new URLSearchParams(), new URLSearchParams().keys(),
    new URL("https://example.org/"), new URLPattern("https://example.org/"),
    new Request("https://example.org/"), new Response("b"), new TextEncoder(),
    new ReadableStream(), new ReadableStream().getReader(), new ReadableStream().values(),
    new WritableStream(), new WritableStream().getWriter(), new TransformStream(),
    port1,
  ];
  if (typeof Iterator === "function") {
    ArrayPrototypePush(kinds, Iterator.from({ next() {} }));
    ArrayPrototypePush(kinds, [].values().map(() => 0));
  }
  if (typeof Intl === "object" && Intl.Segmenter !== undefined) {
    const segments = new Intl.Segmenter("en").segment("a");
    ArrayPrototypePush(kinds, segments);
    ArrayPrototypePush(kinds, segments[Symbol.iterator]());
  }
  return kinds;
}

/**
 * Freezes everything that reflection finds from these objects. Samples stay as they are, since the
 * platform still works with them, and so does the global object.
 */
function freezeAll(roots, samples) {
  const seen = new SafeSet();
  const spared = new SafeSet();
  const waiting = [];
  const add = (value) => {
    const isObject = (typeof value === "object" || typeof value === "function") && value !== null;
    if (!isObject || seen.has(value)) return;
    seen.add(value);
    ArrayPrototypePush(waiting, value);
  };
  spared.add(globalThis);
  for (let i = 0; i < samples.length; i++) spared.add(samples[i]);
  for (let i = 0; i < samples.length; i++) add(samples[i]);
  for (let i = 0; i < roots.length; i++) add(roots[i]);
  while (waiting.length > 0) {
    const object = ArrayPrototypePop(waiting);
    const keys = ReflectOwnKeys(object);
    for (let i = 0; i < keys.length; i++) {
      const found = ReflectGetOwnPropertyDescriptor(object, keys[i]);
      add(found.value);
      add(found.get);
      add(found.set);
    }
    add(ReflectGetPrototypeOf(object));
    if (!spared.has(object)) ObjectFreeze(object);
  }
}

/** `RegExp.$1` and the others come from the last match. */
function forgetMatch() {
  RegExpPrototypeExec(NOTHING, "");
}

/** Runs once, before any code of a tool. */
function harden() {
  // Callbacks of these can run at any later time.
  spends(FinalizationRegistry.prototype, "register");
  spends(PerformanceObserver.prototype, "observe");
  const { WebAssembly } = globalThis;
  if (WebAssembly !== undefined) {
    const later = ["compile", "compileStreaming", "instantiate", "instantiateStreaming"];
    for (let i = 0; i < later.length; i++) spends(WebAssembly, later[i]);
  }
  const table = overridden();
  for (let i = 0; i < table.length; i++) {
    const { 0: object, 1: keys } = table[i];
    for (let j = 0; j < keys.length; j++) allowOverride(object, keys[j]);
  }
  freezeAll(shared(), samples());
  forgetMatch();
  const keys = ReflectOwnKeys(globalThis);
  const known = new SafeSet();
  const properties = [];
  for (let i = 0; i < keys.length; i++) {
    known.add(keys[i]);
    ArrayPrototypePush(properties, ReflectGetOwnPropertyDescriptor(globalThis, keys[i]));
  }
  const { get } = ReflectGetOwnPropertyDescriptor(new Error(), "stack");
  const prototype = ReflectGetPrototypeOf(globalThis);
  const stackOf = get === undefined ? () => undefined : uncurryThis(get);
  baseline = { __proto__: null, keys, known, properties, prototype, stackOf, stack: stackOf(globalThis) };
}

function isSame(key, was) {
  const is = ReflectGetOwnPropertyDescriptor(globalThis, key);
  return ObjectIs(is.value, was.value) && is.get === was.get && is.set === was.set &&
    is.writable === was.writable && is.enumerable === was.enumerable && is.configurable === was.configurable;
}

/** Removes what was added to the global object, and compares the rest. */
function isGlobalRestored() {
  const { keys, known, properties, prototype, stackOf, stack } = baseline;
  const found = ReflectOwnKeys(globalThis);
  if (found.length > keys.length + MAX_ADDED) return false;
  for (let i = 0; i < found.length; i++) {
    if (!known.has(found[i]) && !ReflectDeleteProperty(globalThis, found[i])) return false;
  }
  const left = ReflectOwnKeys(globalThis);
  if (left.length !== keys.length) return false;
  for (let i = 0; i < keys.length; i++) {
    // The order is a state too.
    if (left[i] !== keys[i] || !isSame(keys[i], properties[i])) return false;
  }
  // The engine's `captureStackTrace` leaves a hidden key, which only the getter of `stack` sees.
  return ReflectIsExtensible(globalThis) && ReflectGetPrototypeOf(globalThis) === prototype &&
    stackOf(globalThis) === stack;
}

/**
 * Runs after each call, when nothing of it is pending. Returns whether the next call finds what the
 * first one found. If not, the process must end.
 */
function clean() {
  if (isSpent || baseline === undefined || !isGlobalRestored()) return false;
  // Listeners of the only event target that calls share.
  if (performance[eventTargetData] !== undefined) return false;
  clearMarks(performance);
  clearMeasures(performance);
  forgetMatch();
  reset();
  return true;
}

export { clean, harden };
