// The tool's console. What it writes becomes console lines of the call.
import "ext:sandbox/hidden.js";
import { core, primordials } from "ext:core/mod.js";
import { op_now, op_sandbox_console } from "ext:core/ops";
import { isOver } from "ext:sandbox/running.js";

const {
  Error,
  ErrorCaptureStackTrace,
  MapPrototypeDelete,
  MapPrototypeGet,
  MapPrototypeHas,
  MapPrototypeSet,
  MathRound,
  ObjectCreate,
  ObjectDefineProperty,
  ObjectKeys,
  ReflectApply,
  ReflectDefineProperty,
  ReflectDeleteProperty,
  ReflectGetOwnPropertyDescriptor,
  ReflectGetPrototypeOf,
  ReflectOwnKeys,
  SafeArrayIterator,
  SafeMap,
  String,
  StringPrototypeStartsWith,
  StringPrototypeToWellFormed,
  SymbolFor,
  SymbolKeyFor,
  SymbolToStringTag,
  TypedArrayPrototypeGetBuffer,
  Uint32Array,
  Uint8Array,
} = primordials;
const deno = core.loadExtScript("ext:deno_web/01_console.js");

// As in sandbox::ConsoleLevel, by position.
const DEBUG = 0;
const LOG = 1;
const INFO = 2;
const WARN = 3;
const ERROR = 4;

const MAX_VIEW_DEPTH = 3;
const MAX_PROTOTYPES = 10;

deno.setNoColorFns(() => true, () => true);

/** How the platform formats its own objects: a function for each prototype. */
const views = new SafeMap();
const VIEW = SymbolFor("Deno.privateCustomInspect");

/** Removes from a prototype of the platform what only its printer and Node use. */
function adopt(prototype) {
  const view = ReflectGetOwnPropertyDescriptor(prototype, VIEW)?.value;
  if (view !== undefined) MapPrototypeSet(views, prototype, view);
  const keys = ReflectOwnKeys(prototype);
  for (let i = 0; i < keys.length; i++) {
    const name = typeof keys[i] === "symbol" ? SymbolKeyFor(keys[i]) : undefined;
    if (name === undefined || name === "Deno.core.hostObject") continue;
    if (StringPrototypeStartsWith(name, "Deno.") || StringPrototypeStartsWith(name, "nodejs.")) {
      ReflectDeleteProperty(prototype, keys[i]);
    }
  }
}

function viewOf(value) {
  if ((typeof value !== "object" && typeof value !== "function") || value === null) return undefined;
  let prototype = ReflectGetPrototypeOf(value);
  for (let i = 0; i < MAX_PROTOTYPES && prototype !== null; i++) {
    const view = MapPrototypeGet(views, prototype);
    if (view !== undefined) return view;
    prototype = ReflectGetPrototypeOf(prototype);
  }
  return undefined;
}

/** A plain object or a text that represents an object of the platform. */
function viewed(value, view, depth) {
  let found;
  const keep = (object) => {
    found = object;
    return "";
  };
  const text = ReflectApply(view, value, [keep, { __proto__: null }]);
  // The view only formats texts.
  if (text !== "" || typeof found !== "object" || found === null) {
    return ReflectApply(view, value, [shown, { __proto__: null }]);
  }
  const keys = ObjectKeys(found);
  for (let i = 0; i < keys.length; i++) {
    const inner = ReflectGetOwnPropertyDescriptor(found, keys[i])?.value;
    const view = depth < MAX_VIEW_DEPTH ? viewOf(inner) : undefined;
    if (view === undefined) continue;
    ReflectDefineProperty(found, keys[i], { __proto__: null, value: viewed(inner, view, depth + 1), enumerable: true });
  }
  return found;
}

/** Appends to an array, even if a tool defined setters for array elements. */
function add(array, value) {
  const descriptor = { __proto__: null, value, writable: true, enumerable: true, configurable: true };
  ReflectDefineProperty(array, array.length, descriptor);
}

function formatted(args, options) {
  const parts = [];
  for (let i = 0; i < args.length; i++) {
    let part = args[i];
    try {
      const view = viewOf(part);
      if (view !== undefined) part = viewed(part, view, 0);
    } catch {
      // A getter or proxy of the tool threw: the printer reports it.
    }
    // A lone surrogate is not valid text.
    if (typeof part === "string") part = StringPrototypeToWellFormed(part);
    // A text that replaces the first argument must not be used as a format.
    if (i === 0 && typeof args[0] !== "string" && typeof part === "string") add(parts, "%s");
    add(parts, part);
  }
  // Hooks of a tool must not get the printer's internals.
  return deno.inspectArgs(parts, { __proto__: null, ...options, colors: false, customInspect: false });
}

/** The value as the console formats it. */
function shown(value) {
  return formatted([value], undefined);
}

let groups = 0;
const counts = new SafeMap();
const timers = new SafeMap();

function write(level, args) {
  if (isOver()) return;
  const text = formatted(args, { __proto__: null, indentLevel: groups });
  op_sandbox_console(level, StringPrototypeToWellFormed(text));
}

const time = new Uint32Array(2);
const timeBytes = new Uint8Array(TypedArrayPrototypeGetBuffer(time));

/** Milliseconds, with the resolution of all clocks. */
function now() {
  op_now(timeBytes);
  return time[0] * 1000 + time[1] / 1e6;
}

function lapse(label, args) {
  const begun = MapPrototypeGet(timers, label);
  if (begun === undefined) return write(WARN, ["%s", `Timer '${label}' does not exist`]);
  write(INFO, ["%s", `${label}: ${MathRound((now() - begun) * 1000) / 1000}ms`, ...new SafeArrayIterator(args)]);
}

function group(label) {
  if (label.length > 0) write(LOG, label);
  groups += 1;
}

const methods = {
  __proto__: null,
  debug(...args) {
    write(DEBUG, args);
  },
  log(...args) {
    write(LOG, args);
  },
  info(...args) {
    write(INFO, args);
  },
  warn(...args) {
    write(WARN, args);
  },
  error(...args) {
    write(ERROR, args);
  },
  assert(condition = false, ...args) {
    if (condition) return;
    if (typeof args[0] === "string") args[0] = `Assertion failed: ${args[0]}`;
    else args = ["Assertion failed", ...new SafeArrayIterator(args)];
    write(ERROR, args);
  },
  dir(value = undefined, options = undefined) {
    const asked = typeof options === "object" && options !== null ? options : { __proto__: null };
    const { depth = 4, showHidden = false } = asked;
    if (isOver()) return;
    const text = formatted([value], { __proto__: null, indentLevel: groups, depth, showHidden });
    op_sandbox_console(LOG, StringPrototypeToWellFormed(text));
  },
  dirxml(...args) {
    write(LOG, args);
  },
  table(value = undefined, _columns = undefined) {
    write(LOG, [value]);
  },
  trace(...args) {
    const error = new Error();
    ErrorCaptureStackTrace(error, methods.trace);
    ObjectDefineProperty(error, "name", { __proto__: null, value: "Trace" });
    ObjectDefineProperty(error, "message", { __proto__: null, value: formatted(args, undefined) });
    write(LOG, ["%s", String(error.stack)]);
  },
  count(label = "default") {
    label = String(label);
    const count = (MapPrototypeGet(counts, label) ?? 0) + 1;
    MapPrototypeSet(counts, label, count);
    write(INFO, ["%s", `${label}: ${count}`]);
  },
  countReset(label = "default") {
    label = String(label);
    if (!MapPrototypeDelete(counts, label)) write(WARN, ["%s", `Count for '${label}' does not exist`]);
  },
  time(label = "default") {
    label = String(label);
    if (MapPrototypeHas(timers, label)) return write(WARN, ["%s", `Timer '${label}' already exists`]);
    MapPrototypeSet(timers, label, now());
  },
  timeLog(label = "default", ...args) {
    lapse(String(label), args);
  },
  timeEnd(label = "default") {
    label = String(label);
    lapse(label, []);
    MapPrototypeDelete(timers, label);
  },
  group(...label) {
    group(label);
  },
  groupCollapsed(...label) {
    group(label);
  },
  groupEnd() {
    if (groups > 0) groups -= 1;
  },
  clear() {
    groups = 0;
  },
};

// As in the standard: the namespace object's prototype is an empty object.
const console = ObjectCreate({});
{
  const names = ObjectKeys(methods);
  for (let i = 0; i < names.length; i++) {
    ObjectDefineProperty(console, names[i], {
      __proto__: null,
      value: methods[names[i]],
      writable: true,
      enumerable: true,
      configurable: true,
    });
  }
  ObjectDefineProperty(console, SymbolToStringTag, { __proto__: null, value: "console", configurable: true });
}

/** Writes an error that nothing in the tool handles. */
function report(what, error) {
  try {
    write(ERROR, [what, error]);
  } catch {
    op_sandbox_console(ERROR, what);
  }
}

/** Clears the console's state when a new call begins. */
function reset() {
  groups = 0;
  counts.clear();
  timers.clear();
}

export { adopt, console, report, reset, shown };
