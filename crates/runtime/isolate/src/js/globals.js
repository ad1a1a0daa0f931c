// The web platform as globals of the tool.
import { core, primordials } from "ext:core/mod.js";
import { adopt, console } from "ext:sandbox/console.js";
import { reportUncaught } from "ext:sandbox/failure.js";
import { fetch } from "ext:sandbox/fetch.js";

const {
  ArrayPrototypeJoin,
  ArrayPrototypePush,
  FunctionPrototypeBind,
  NumberPrototypeToString,
  ObjectDefineProperties,
  ObjectDefineProperty,
  ObjectHasOwn,
  ObjectKeys,
  ObjectPrototypeIsPrototypeOf,
  ReflectApply,
  ReflectDeleteProperty,
  ReflectGetOwnPropertyDescriptor,
  ReflectGetPrototypeOf,
  SafeArrayIterator,
  StringPrototypePadStart,
  StringPrototypeSlice,
  Symbol,
  SymbolIterator,
  TypeError,
  TypedArrayPrototypeGetBuffer,
  TypedArrayPrototypeGetByteLength,
  TypedArrayPrototypeGetByteOffset,
  TypedArrayPrototypeGetLength,
  Uint32Array,
  Uint8Array,
} = primordials;
const load = core.loadExtScript;
const { long } = load("ext:deno_webidl/00_webidl.js").converters;

function names(module, ...wanted) {
  const found = { __proto__: null };
  for (let i = 0; i < wanted.length; i++) found[wanted[i]] = module[wanted[i]];
  return found;
}

// Deno's crypto marks its keys with a symbol from its Node layer, which does not exist here.
const { internals } = globalThis.__bootstrap;
internals.kKeyObject = Symbol("kKeyObject");

const abort = load("ext:deno_web/03_abort_signal.js");
const base64 = load("ext:deno_web/05_base64.js");
const compression = load("ext:deno_web/14_compression.js");
const crypto = load("ext:deno_crypto/00_crypto.js");
const encoding = load("ext:deno_web/08_text_encoding.js");
const event = load("ext:deno_web/02_event.js");
const exception = load("ext:deno_web/01_dom_exception.js");
const file = load("ext:deno_web/09_file.js");
const reader = load("ext:deno_web/10_filereader.js");
const ports = load("ext:deno_web/13_message_port.js");
const performance = load("ext:deno_web/15_performance.js");
const streams = load("ext:deno_web/06_streams.js");
const timers = load("ext:deno_web/02_timers.js");
const url = load("ext:deno_web/00_url.js");
const pattern = load("ext:deno_web/01_urlpattern.js");
const formData = load("ext:deno_fetch/21_formdata.js");
const headers = load("ext:deno_fetch/20_headers.js");
const request = load("ext:deno_fetch/23_request.js");
const response = load("ext:deno_fetch/23_response.js");

// Ops report errors by the name of their class; those of the platform are DOMExceptions.
const EXCEPTIONS = [
  "DataError",
  "IndexSizeError",
  "InvalidAccessError",
  "InvalidCharacterError",
  "InvalidStateError",
  "NotSupportedError",
  "OperationError",
  "SyntaxError",
  "TypeMismatchError",
];
for (let i = 0; i < EXCEPTIONS.length; i++) {
  core.registerErrorBuilder(`DOMException${EXCEPTIONS[i]}`, (message) => new exception.DOMException(message, EXCEPTIONS[i]));
}
core.registerErrorBuilder("DOMExceptionQuotaExceededError", (message) => new exception.QuotaExceededError(message));

// Errors that a listener throws go to the console: the global object is not an event target here.
event.saveGlobalThisReference({
  __proto__: null,
  dispatchEvent(uncaught) {
    reportUncaught("Uncaught", uncaught.error);
    return false;
  },
});

const interfaces = {
  __proto__: null,
  ...names(abort, "AbortController", "AbortSignal"),
  ...names(compression, "CompressionStream", "DecompressionStream"),
  ...names(crypto, "Crypto", "CryptoKey", "SubtleCrypto"),
  ...names(encoding, "TextDecoder", "TextDecoderStream", "TextEncoder", "TextEncoderStream"),
  ...names(event, "CloseEvent", "CustomEvent", "ErrorEvent", "Event", "EventTarget", "MessageEvent", "ProgressEvent"),
  ...names(event, "PromiseRejectionEvent"),
  ...names(exception, "DOMException", "QuotaExceededError"),
  ...names(file, "Blob", "File"),
  ...names(reader, "FileReader"),
  ...names(ports, "MessageChannel", "MessagePort"),
  ...names(performance, "Performance", "PerformanceEntry", "PerformanceMark", "PerformanceMeasure"),
  ...names(performance, "PerformanceObserver", "PerformanceObserverEntryList"),
  ...names(streams, "ByteLengthQueuingStrategy", "CountQueuingStrategy"),
  ...names(streams, "ReadableByteStreamController", "ReadableStream", "ReadableStreamBYOBReader"),
  ...names(streams, "ReadableStreamBYOBRequest", "ReadableStreamDefaultController", "ReadableStreamDefaultReader"),
  ...names(streams, "TransformStream", "TransformStreamDefaultController"),
  ...names(streams, "WritableStream", "WritableStreamDefaultController", "WritableStreamDefaultWriter"),
  ...names(url, "URL", "URLSearchParams"),
  ...names(pattern, "URLPattern"),
  ...names(formData, "FormData"),
  ...names(headers, "Headers"),
  ...names(request, "Request"),
  ...names(response, "Response"),
  console,
};

const functions = {
  __proto__: null,
  ...names(base64, "atob", "btoa"),
  ...names(timers, "clearInterval", "clearTimeout", "setInterval", "setTimeout"),
  ...names(ports, "structuredClone"),
  performance: performance.performance,
  fetch,
};

/**
 * The platform counts timers over all calls of an isolate. A tool sees their numbers from 1 in each
 * call: what is added to its numbers. `undefined` before its first timer.
 */
let timersBefore;

/** The platform accepts code as text here; tools must pass a function. */
function onlyFunctions(timer) {
  const name = timer.name;
  const only = {
    [name](callback, timeout = 0, ...args) {
      if (typeof callback !== "function") throw new TypeError(`${name} takes a function; text is not run as code`);
      const id = ReflectApply(timer, this, [callback, timeout, ...new SafeArrayIterator(args)]);
      timersBefore ??= id - 1;
      return id - timersBefore;
    },
  };
  return only[name];
}

/** A function, not a method, as the platform's own. */
function clearing(clear) {
  const { name } = clear;
  const cleared = function (id = 0) {
    id = long(id);
    if (timersBefore !== undefined) ReflectApply(clear, this, [id + timersBefore]);
  };
  ObjectDefineProperty(cleared, "name", { __proto__: null, value: name });
  return cleared;
}
functions.setInterval = onlyFunctions(timers.setInterval);
functions.setTimeout = onlyFunctions(timers.setTimeout);
functions.clearInterval = clearing(timers.clearInterval);
functions.clearTimeout = clearing(timers.clearTimeout);

// Members that are not part of the web platform: interfaces to Node's layer and to the host.
const EXTRAS = [
  [crypto.Crypto, ["create", "registerSymbols"]],
  [crypto.CryptoKey, ["exportNodeMaterial", "fromCloneData", "importSync"]],
  [crypto.SubtleCrypto, ["create"]],
  [event.EventTarget.prototype, ["getParent"]],
  [event.Event.prototype, ["initialized"]],
  [ports.MessagePort.prototype, ["ref", "unref", "hasRef"]],
];

const KEYS_INSIDE = ["privateKey", "publicKey", "sharedKey"];

/**
 * Removes a key's material, which is there for clones and for Node's layer: even a non-extractable
 * key would expose it.
 */
function closeKey(value) {
  if (typeof value !== "object" || value === null) return;
  if (ObjectPrototypeIsPrototypeOf(crypto.CryptoKey.prototype, value)) {
    ReflectDeleteProperty(value, core.hostObjectBrand);
    ReflectDeleteProperty(value, internals.kKeyObject);
    return;
  }
  for (let i = 0; i < KEYS_INSIDE.length; i++) {
    const inner = ReflectGetOwnPropertyDescriptor(value, KEYS_INSIDE[i])?.value;
    if (ObjectPrototypeIsPrototypeOf(crypto.CryptoKey.prototype, inner)) closeKey(inner);
  }
}

/** Wraps an operation, so that its promise is not the host's own, which is marked. */
function closeOperation(name) {
  const subtle = crypto.SubtleCrypto.prototype;
  const operate = subtle[name];
  const closed = {
    async [name](...args) {
      const made = await ReflectApply(operate, this, args);
      closeKey(made);
      return made;
    },
  }[name];
  ObjectDefineProperty(closed, "length", { __proto__: null, value: operate.length });
  subtle[name] = closed;
}
{
  const names = ObjectKeys(crypto.SubtleCrypto.prototype);
  for (let i = 0; i < names.length; i++) closeOperation(names[i]);
}
{
  const names = ObjectKeys(interfaces);
  for (let i = 0; i < names.length; i++) {
    const prototype = interfaces[names[i]].prototype;
    if (prototype !== undefined) adopt(prototype);
  }
  const lists = [new headers.Headers(), new url.URLSearchParams(), new formData.FormData()];
  for (let i = 0; i < lists.length; i++) adopt(ReflectGetPrototypeOf(lists[i][SymbolIterator]()));
}
// Without the material that `closeKey` removes, a key cannot be cloned; an empty clone would be
// worse than none.
ports.markNotSerializable(crypto.CryptoKey.prototype);

function descriptors(values, enumerable) {
  const found = { __proto__: null };
  const keys = ObjectKeys(values);
  for (let i = 0; i < keys.length; i++) {
    found[keys[i]] = { __proto__: null, value: values[keys[i]], writable: true, enumerable, configurable: true };
  }
  return found;
}

ObjectDefineProperties(globalThis, descriptors(interfaces, false));
ObjectDefineProperties(globalThis, descriptors(functions, true));
ObjectDefineProperties(globalThis, {
  __proto__: null,
  // Its object cannot be part of a snapshot.
  crypto: { __proto__: null, get: () => crypto.crypto, enumerable: true, configurable: true },
});

// Isolates that are forked from one, or come from the same snapshot, would draw the same numbers
// from the engine's generator. So `Math.random` is our own generator (sfc32, 128 bits of state). It
// takes its seed from the kernel at its first use, which is after the fork.
const { getRandomValues } = crypto.Crypto.prototype;
let state;

function next() {
  const sum = (state[0] + state[1] + state[3]) | 0;
  state[3]++;
  state[0] = state[1] ^ (state[1] >>> 9);
  state[1] = state[2] + (state[2] << 3);
  state[2] = ((state[2] << 21) | (state[2] >>> 11)) + sum;
  return sum >>> 0;
}

function random() {
  state ??= ReflectApply(getRandomValues, crypto.crypto, [new Uint32Array(4)]);
  // 53 bits: the precision of a number in [0, 1).
  return ((next() >>> 5) * 0x4000000 + (next() >>> 6)) / 0x20000000000000;
}
// A bound function has the source text of a native one.
const bound = FunctionPrototypeBind(random);
internals.random = random;
ObjectDefineProperty(bound, "name", { __proto__: null, value: "random" });
ObjectDefineProperty(Math, "random", { __proto__: null, value: bound });

/** Starts the clock and the numbers of timers. */
function beginTime() {
  performance.setTimeOrigin();
  timersBefore = undefined;
}

/** The next number comes from a new seed. */
function forgetChance() {
  state = undefined;
}

/** The next numbers follow from this seed, in `Math.random` and in `crypto`. */
function seedChance(number) {
  state = new Uint32Array([0x9e3779b9, 0x243f6a88, 0xb7e15162, number]);
  // The first numbers of similar seeds are similar.
  for (let i = 0; i < 16; i++) next();
  const seeded = {
    getRandomValues(array) {
      // Checks the argument as before, and fills it with what is replaced below.
      ReflectApply(getRandomValues, this, [array]);
      const bytes = new Uint8Array(TypedArrayPrototypeGetBuffer(array), TypedArrayPrototypeGetByteOffset(array), TypedArrayPrototypeGetByteLength(array));
      for (let i = 0; i < TypedArrayPrototypeGetLength(bytes); i++) bytes[i] = next() & 0xff;
      return array;
    },
    randomUUID() {
      const hex = [];
      for (let i = 0; i < 4; i++) ArrayPrototypePush(hex, StringPrototypePadStart(NumberPrototypeToString(next(), 16), 8, "0"));
      const text = ArrayPrototypeJoin(hex, "");
      const part = (from, to) => StringPrototypeSlice(text, from, to);
      return `${part(0, 8)}-${part(8, 12)}-4${part(13, 16)}-8${part(17, 20)}-${part(20, 32)}`;
    },
  };
  const { prototype } = crypto.Crypto;
  ObjectDefineProperty(prototype, "getRandomValues", { __proto__: null, value: seeded.getRandomValues });
  ObjectDefineProperty(prototype, "randomUUID", { __proto__: null, value: seeded.randomUUID });
}

/** Runs in each isolate that comes from the snapshot. */
function refresh() {
  beginTime();
  // Its first use replaces it on the global object.
  queueMicrotask(() => {});
  // Created now: it uses what is removed below, and cannot be part of a snapshot.
  void crypto.crypto.subtle;
  for (let i = 0; i < EXTRAS.length; i++) {
    const { 0: object, 1: names } = EXTRAS[i];
    for (let j = 0; j < names.length; j++) ReflectDeleteProperty(object, names[j]);
  }
}

export { beginTime, forgetChance, refresh, seedChance };
