// Removes and locks parts of the global scope before tool code runs.
import { core, primordials } from "ext:core/mod.js";
import { closeTransfers } from "ext:sandbox/transfers.js";
import { closeWebAssembly } from "ext:sandbox/webassembly.js";

const {
  DatePrototype,
  Error,
  EvalError,
  FunctionPrototype,
  ObjectDefineProperty,
  ObjectHasOwn,
  ObjectPrototype,
  ObjectSetPrototypeOf,
  Promise,
  PromisePrototype,
  Proxy,
  ReflectDefineProperty,
  ReflectDeleteProperty,
  ReflectGetOwnPropertyDescriptor,
  ReflectGetPrototypeOf,
  ReflectOwnKeys,
  StringPrototypeStartsWith,
  SymbolSpecies,
} = primordials;

const HIDDEN = [
  // The host's own globals; those whose names begin with two underscores are removed too.
  "Deno",
  "gc",
  // Shared memory, which could be used as a clock; another realm, which runs code from text.
  "SharedArrayBuffer",
  "Atomics",
  "ShadowRealm",
  // A clock that is too fine. Not every build of V8 has it: vendor/v8 is without it.
  "Temporal",
];
/**
 * Deno calls its ops and awaits them through these: a tool that replaced one would get the ops or
 * their results.
 */
const LOCKED = [
  [FunctionPrototype, ["apply", "bind", "call"]],
  [Promise, [SymbolSpecies]],
  [PromisePrototype, ["constructor"]],
];

function define(object, key, value) {
  ObjectDefineProperty(object, key, { __proto__: null, value, writable: true, enumerable: false, configurable: true });
}

/**
 * For an unknown class the host's table of errors would look in `Object.prototype` and then throw
 * undefined.
 */
function closeErrors() {
  const unknown = "an unregistered class of errors";
  let errors;
  define(ObjectPrototype, unknown, function () {
    errors = this;
    return undefined;
  });
  core.buildCustomError(unknown);
  ReflectDeleteProperty(ObjectPrototype, unknown);
  const build = (message) => new Error(message);
  ObjectSetPrototypeOf(errors, new Proxy({ __proto__: null }, { __proto__: null, get: () => build }));
}

const NO_TEXT = "Code generation from strings disallowed for this context";

/** Prevents code from text by any constructor. V8 refuses it too. */
function closeCompilers() {
  const samples = [function () {}, async function () {}, function* () {}, async function* () {}];
  for (let i = 0; i < samples.length; i++) {
    const prototype = ReflectGetPrototypeOf(samples[i]);
    const name = ReflectGetOwnPropertyDescriptor(prototype, "constructor").value.name;
    const refuse = {
      [name]: function () {
        throw new EvalError(NO_TEXT);
      },
    }[name];
    ReflectDefineProperty(refuse, "length", { __proto__: null, value: 1 });
    ReflectDefineProperty(refuse, "prototype", { __proto__: null, value: prototype, writable: false });
    ReflectDefineProperty(prototype, "constructor", { __proto__: null, value: refuse });
    if (prototype === FunctionPrototype) define(globalThis, "Function", refuse);
  }
  const refuse = (_text) => {
    throw new EvalError(NO_TEXT);
  };
  ReflectDefineProperty(refuse, "name", { __proto__: null, value: "eval" });
  define(globalThis, "eval", refuse);
}

function lockdown() {
  for (let i = 0; i < HIDDEN.length; i++) ReflectDeleteProperty(globalThis, HIDDEN[i]);
  // The way to Temporal through a date.
  ReflectDeleteProperty(DatePrototype, "toTemporalInstant");
  const names = ReflectOwnKeys(globalThis);
  for (let i = 0; i < names.length; i++) {
    if (typeof names[i] === "string" && StringPrototypeStartsWith(names[i], "__")) {
      ReflectDeleteProperty(globalThis, names[i]);
    }
  }
  closeErrors();
  closeCompilers();
  closeTransfers();
  closeWebAssembly();
  for (let i = 0; i < LOCKED.length; i++) {
    const { 0: object, 1: keys } = LOCKED[i];
    for (let j = 0; j < keys.length; j++) {
      const found = ReflectGetOwnPropertyDescriptor(object, keys[j]);
      found.configurable = false;
      if (ObjectHasOwn(found, "value")) found.writable = false;
      ObjectDefineProperty(object, keys[j], found);
    }
  }
}

export { lockdown };
