// Lets calls follow each other in one realm. `harden` makes everything that two calls can both
// reach unchangeable, except for some properties; `clean` compares those and
// the few inner states that no freezing covers. docs/design/sandbox.md says why this is enough.
import { core, internals, primordials } from "ext:core/mod.js";
import { reset } from "ext:sandbox/console.js";
import { makeContext } from "ext:sandbox/context.js";
import { endTimers } from "ext:sandbox/system_timers.js";

const {
  ArrayPrototypeIncludes,
  ArrayPrototypePop,
  ArrayPrototypePush,
  FunctionPrototypeToString,
  ObjectDefineProperty,
  ObjectFreeze,
  ObjectHasOwn,
  ObjectIs,
  ObjectKeys,
  ObjectPreventExtensions,
  ObjectPrototypeIsPrototypeOf,
  ReflectApply,
  ReflectDeleteProperty,
  ReflectGetOwnPropertyDescriptor,
  ReflectGetPrototypeOf,
  ReflectIsExtensible,
  ReflectOwnKeys,
  ReflectSet,
  RegExpPrototypeExec,
  SafeMap,
  SafeSet,
  SetPrototypeForEach,
  StringPrototypeStartsWith,
  SymbolPrototypeGetDescription,
  TypeError,
  uncurryThis,
} = primordials;
const { eventTargetData } = core.loadExtScript("ext:deno_web/02_event.js");
const { performance, Performance } = core.loadExtScript("ext:deno_web/15_performance.js");
const clearMarks = uncurryThis(Performance.prototype.clearMarks);
const clearMeasures = uncurryThis(Performance.prototype.clearMeasures);
/** The platform's classes, also those that only its errors and inner objects have. */
const { classes } = internals;
// Not a SafeRegExp: the last match of a subclass need not count.
const NOTHING = /(?:)/;

/**
 * The global object's properties that tools assign, as for a mock. The others are unchangeable, so
 * that `clean` need not compare them.
 */
const ASSIGNABLE = [
  "Date", "FormData", "Headers", "Request", "Response", "clearInterval", "clearTimeout", "console", "crypto", "fetch",
  "performance", "queueMicrotask", "setInterval", "setTimeout", "structuredClone",
];
/** More properties than this on the global object are not removed one by one. */
const MAX_ADDED = 1000;

/** The call used something that the host cannot end or take back. */
let isSpent = false;
/** The global object's own properties, in order, and its other states. */
let baseline;
/** The properties that a call can assign, with their values. */
const replaceable = [];
/** All objects that two calls can both reach. */
let shared;

/** Replaces a method by one that calls it through `act`, which also gets that one. */
function wrap(object, key, act) {
  const found = ReflectGetOwnPropertyDescriptor(object, key);
  if (found === undefined) return;
  const { value: original } = found;
  const wrapped = {
    [key](...args) {
      return act(original, this, args, wrapped);
    },
  }[key];
  ObjectDefineProperty(wrapped, "length", { __proto__: null, value: original.length });
  ObjectDefineProperty(object, key, { __proto__: null, value: wrapped });
}

/** Marks the realm as spent when this method is called. */
function spends(object, key) {
  wrap(object, key, (original, receiver, args) => {
    isSpent = true;
    return ReflectApply(original, receiver, args);
  });
}

/** Freezes what this method returns, which the platform keeps and reads between calls. */
function freezesResult(object, key) {
  wrap(object, key, (original, receiver, args) => ObjectFreeze(ReflectApply(original, receiver, args)));
}

/**
 * Properties that objects of a tool often have too. An assignment to an object cannot replace an
 * unchangeable property that it inherits, so these stay writable, and `clean` restores them.
 * Nothing that the platform does with their values during a call can stay in it.
 */
function writable() {
  const errors = ["Error", "EvalError", "RangeError", "ReferenceError", "SyntaxError", "TypeError", "URIError", "AggregateError", "SuppressedError"];
  const objectKeys = [
    "constructor", "hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable", "toLocaleString", "toString", "valueOf",
    "__defineGetter__", "__defineSetter__", "__lookupGetter__", "__lookupSetter__",
  ];
  const found = [
    { __proto__: null, object: Array.prototype, keys: ["toString"] },
    { __proto__: null, object: Function.prototype, keys: ["toString"] },
    { __proto__: null, object: Object.prototype, keys: objectKeys },
    { __proto__: null, object: Error, keys: ["stackTraceLimit"] },
  ];
  for (let i = 0; i < errors.length; i++) {
    const object = globalThis[errors[i]]?.prototype;
    if (object !== undefined) ArrayPrototypePush(found, { __proto__: null, object, keys: ["constructor", "message", "name", "toString"] });
  }
  return found;
}

/** Makes the object as unchangeable as `ObjectFreeze` does, but the values of these keys. */
function freezeOthers(object, kept) {
  const keys = ReflectOwnKeys(object);
  for (let i = 0; i < keys.length; i++) {
    const found = ReflectGetOwnPropertyDescriptor(object, keys[i]);
    const fixed = { __proto__: null, configurable: false };
    if (ObjectHasOwn(found, "value") && !ArrayPrototypeIncludes(kept, keys[i])) fixed.writable = false;
    ObjectDefineProperty(object, keys[i], fixed);
  }
  ObjectPreventExtensions(object);
  for (let i = 0; i < kept.length; i++) {
    const found = ReflectGetOwnPropertyDescriptor(object, kept[i]);
    if (found?.writable) ArrayPrototypePush(replaceable, { __proto__: null, object, key: kept[i], value: found.value });
  }
}

function thrownBy(act) {
  try {
    return act();
  } catch (error) {
    return error;
  }
}

/** Objects that calls share and that the global object's properties do not lead to. */
function roots() {
  const found = [globalThis, crypto, crypto.subtle, performance, makeContext('{"request":{"id":""},"secrets":{}}')];
  const errors = ObjectKeys(core.errorConstructors);
  for (let i = 0; i < errors.length; i++) ArrayPrototypePush(found, core.errorConstructors[errors[i]]);
  for (let i = 0; i < classes.length; i++) ArrayPrototypePush(found, classes[i]);
  return found;
}

/** The platform's symbol with this name among the members of a prototype. */
function symbolOf(prototype, name) {
  const keys = ReflectOwnKeys(prototype);
  for (let i = 0; i < keys.length; i++) {
    if (typeof keys[i] === "symbol" && SymbolPrototypeGetDescription(keys[i]) === name) return keys[i];
  }
  return undefined;
}

/** Adds what the platform gives to code that takes the place of its own. */
function addGiven(kinds) {
  const add = (value) => ArrayPrototypePush(kinds, value);
  const pull = symbolOf(ReadableStreamDefaultController.prototype, "[[PullSteps]]");
  const pulled = () => new ReadableStream({ start: (controller) => ObjectDefineProperty(controller, pull, { __proto__: null, value: add }) });
  pulled().getReader().read();
  pulled().values().next();
  let bytes;
  new ReadableStream({ type: "bytes", start: (controller) => (bytes = controller) });
  add(thrownBy(() => ReadableByteStreamController.prototype[pull].call(bytes)));
  Error.prepareStackTrace = (_error, sites) => sites;
  const sites = new Error().stack;
  delete Error.prepareStackTrace;
  if (typeof sites === "object") add(sites[0]);
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
    new CountQueuingStrategy({ highWaterMark: 1 }), new ByteLengthQueuingStrategy({ highWaterMark: 1 }),
    new TextDecoder(), new TextEncoderStream(), new TextDecoderStream(),
    new CompressionStream("gzip"), new DecompressionStream("gzip"),
    new File([], "f"), new CloseEvent("e"), new ProgressEvent("e"),
    port1,
  ];
  addGiven(kinds);
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

/** Symbols of methods that only read their receiver, and that other objects are given to. */
const READING = /^(?:Symbol\.|Deno\.|nodejs\.)/;

/** Whether a member of the platform writes its receiver without asking what that is. */
function writesReceiver(prototype, key) {
  if (typeof key === "symbol") return RegExpPrototypeExec(READING, SymbolPrototypeGetDescription(key) ?? "") === null;
  return key !== "constructor" && (prototype === Event.prototype || StringPrototypeStartsWith(key, "on"));
}

/**
 * The hidden keys of the platform can be set on frozen objects too. Its members for inner use do
 * that without asking what their receiver is. Here they get only objects of their own class that
 * no other call reaches. An object that the engine keeps for all calls, as those of templates, is
 * of no such class.
 */
function refuseShared(prototype) {
  const guard = (original) => function (...args) {
    if (!ObjectPrototypeIsPrototypeOf(prototype, this) || shared.has(this)) throw new TypeError("Illegal invocation");
    return ReflectApply(original, this, args);
  };
  const keys = ReflectOwnKeys(prototype);
  for (let i = 0; i < keys.length; i++) {
    const found = ReflectGetOwnPropertyDescriptor(prototype, keys[i]);
    if (!found.configurable || !writesReceiver(prototype, keys[i])) continue;
    if (typeof found.value === "function") found.value = guard(found.value);
    if (found.get !== undefined) found.get = guard(found.get);
    if (found.set !== undefined) found.set = guard(found.set);
    ObjectDefineProperty(prototype, keys[i], found);
  }
}

/** The prototypes of the platform's classes. The engine's own are not written in JavaScript. */
function platformPrototypes(samples) {
  const found = new SafeSet();
  const add = (prototype) => {
    for (let at = prototype; typeof at === "object" && at !== null; at = ReflectGetPrototypeOf(at)) {
      const constructor = ReflectGetOwnPropertyDescriptor(at, "constructor")?.value;
      if (typeof constructor === "function" && StringPrototypeStartsWith(FunctionPrototypeToString(constructor), "class")) {
        found.add(at);
      }
    }
  };
  const keys = ReflectOwnKeys(globalThis);
  for (let i = 0; i < keys.length; i++) {
    const { value } = ReflectGetOwnPropertyDescriptor(globalThis, keys[i]);
    if (typeof value === "function") add(ReflectGetOwnPropertyDescriptor(value, "prototype")?.value);
  }
  for (let i = 0; i < samples.length; i++) add(ReflectGetPrototypeOf(samples[i]));
  for (let i = 0; i < classes.length; i++) add(classes[i].prototype);
  return found;
}

/** Getters return objects whose getters return objects. */
const MAX_DEPTH = 4;

/** What the getters of this object return. */
function got(object) {
  const results = [];
  for (let at = object; at !== null; at = ReflectGetPrototypeOf(at)) {
    const keys = ReflectOwnKeys(at);
    for (let i = 0; i < keys.length; i++) {
      const { get } = ReflectGetOwnPropertyDescriptor(at, keys[i]);
      if (get === undefined) continue;
      try {
        ArrayPrototypePush(results, ReflectApply(get, object, []));
      } catch {
        // It is for other objects.
      }
    }
  }
  return results;
}

/**
 * Freezes everything that reflection and getters find from these objects. Samples stay as they are,
 * since the platform still works with them, and so does the global object.
 */
function freezeAll(roots, samples, exceptions) {
  const seen = new SafeSet();
  const spared = new SafeSet();
  const kept = new SafeMap();
  const waiting = [];
  const add = (value, depth) => {
    const isObject = (typeof value === "object" || typeof value === "function") && value !== null;
    if (!isObject || seen.has(value)) return;
    seen.add(value);
    ArrayPrototypePush(waiting, { __proto__: null, value, depth });
  };
  for (let i = 0; i < exceptions.length; i++) kept.set(exceptions[i].object, exceptions[i].keys);
  spared.add(globalThis);
  for (let i = 0; i < samples.length; i++) spared.add(samples[i]);
  for (let i = 0; i < samples.length; i++) add(samples[i], 0);
  for (let i = 0; i < roots.length; i++) add(roots[i], 0);
  while (waiting.length > 0) {
    const { value: object, depth } = ArrayPrototypePop(waiting);
    const keys = ReflectOwnKeys(object);
    for (let i = 0; i < keys.length; i++) {
      const found = ReflectGetOwnPropertyDescriptor(object, keys[i]);
      add(found.value, MAX_DEPTH);
      add(found.get, MAX_DEPTH);
      add(found.set, MAX_DEPTH);
    }
    add(ReflectGetPrototypeOf(object), MAX_DEPTH);
    if (depth < MAX_DEPTH) {
      const results = got(object);
      for (let i = 0; i < results.length; i++) add(results[i], depth + 1);
    }
    if (kept.has(object)) freezeOthers(object, kept.get(object));
    else if (!spared.has(object)) ObjectFreeze(object);
  }
  return seen;
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
    // The last one runs code on a stack of its own, whose end the host does not watch.
    const spending = ["compile", "compileStreaming", "instantiate", "instantiateStreaming", "promising"];
    for (let i = 0; i < spending.length; i++) spends(WebAssembly, spending[i]);
  }
  freezesResult(Performance.prototype, "mark");
  freezesResult(Performance.prototype, "measure");
  // The engine's `captureStackTrace` leaves a hidden key on the object.
  wrap(Error, "captureStackTrace", (original, receiver, { 0: object, 1: above }, wrapped) => {
    if (object === globalThis) isSpent = true;
    return ReflectApply(original, receiver, [object, above ?? wrapped]);
  });
  wrap(EventTarget.prototype, "dispatchEvent", (original, receiver, args) => {
    if (shared.has(args[0])) throw new TypeError("Illegal invocation");
    return ReflectApply(original, receiver, args);
  });
  shared = new SafeSet();
  const kinds = samples();
  SetPrototypeForEach(platformPrototypes(kinds), refuseShared);
  shared = freezeAll(roots(), kinds, writable());
  forgetMatch();
  fixGlobals();
}

/** Makes the global object's properties unchangeable, but those that tools assign. */
function fixGlobals() {
  const keys = ReflectOwnKeys(globalThis);
  const known = new SafeSet();
  const assignable = [];
  for (let i = 0; i < keys.length; i++) {
    known.add(keys[i]);
    const found = ReflectGetOwnPropertyDescriptor(globalThis, keys[i]);
    if (found.configurable && ArrayPrototypeIncludes(ASSIGNABLE, keys[i])) {
      ArrayPrototypePush(assignable, { __proto__: null, key: keys[i], was: found });
      continue;
    }
    const fixed = { __proto__: null, configurable: false };
    if (ObjectHasOwn(found, "value")) fixed.writable = false;
    ObjectDefineProperty(globalThis, keys[i], fixed);
  }
  baseline = { __proto__: null, keys, known, assignable, prototype: ReflectGetPrototypeOf(globalThis) };
}

function isSame({ key, was }) {
  const is = ReflectGetOwnPropertyDescriptor(globalThis, key);
  return is !== undefined && ObjectIs(is.value, was.value) && is.get === was.get && is.set === was.set &&
    is.writable === was.writable && is.enumerable === was.enumerable && is.configurable === was.configurable;
}

/** Whether the global object has these keys and no others. Their order is a state too. */
function hasKeys(keys) {
  const found = ReflectOwnKeys(globalThis);
  if (found.length !== keys.length) return false;
  for (let i = 0; i < keys.length; i++) {
    if (found[i] !== keys[i]) return false;
  }
  return true;
}

/** Deletes what was added to the global object. */
function deleteAdded({ keys, known }) {
  const found = ReflectOwnKeys(globalThis);
  if (found.length > keys.length + MAX_ADDED) return false;
  for (let i = 0; i < found.length; i++) {
    if (!known.has(found[i]) && !ReflectDeleteProperty(globalThis, found[i])) return false;
  }
  return hasKeys(keys);
}

/** Removes what was added to the global object, and compares the rest. */
function isGlobalRestored() {
  const { keys, assignable, prototype } = baseline;
  if (!hasKeys(keys) && !deleteAdded(baseline)) return false;
  for (let i = 0; i < assignable.length; i++) {
    if (!isSame(assignable[i])) return false;
  }
  return ReflectIsExtensible(globalThis) && ReflectGetPrototypeOf(globalThis) === prototype;
}

/** Gives the properties that a call can assign their values again. */
function areReplacedRestored() {
  for (let i = 0; i < replaceable.length; i++) {
    const { object, key, value } = replaceable[i];
    const { value: found, writable } = ReflectGetOwnPropertyDescriptor(object, key);
    if (!writable || (!ObjectIs(found, value) && !ReflectSet(object, key, value))) return false;
  }
  return true;
}

/**
 * Runs after each call, when nothing of it is pending. Returns whether the next call finds what the
 * first one found. If not, the process must end. No code of the tool can run in here.
 */
function clean() {
  // First, so that what follows would find what a callback did.
  if (!endTimers() || isSpent || baseline === undefined || !areReplacedRestored()) return false;
  // Listeners of the only event target that calls share.
  if (performance[eventTargetData] !== undefined) return false;
  clearMarks(performance);
  clearMeasures(performance);
  forgetMatch();
  reset();
  return isGlobalRestored();
}

export { clean, harden };
