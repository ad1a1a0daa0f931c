// The tool's console: what it writes becomes lines of the call's metadata.
import { core, primordials } from "ext:core/mod.js";
import { op_sandbox_console } from "ext:core/ops";

const { ObjectDefineProperty, SafeArrayIterator, String, StringPrototypeEndsWith, StringPrototypeSlice } = primordials;
const deno = core.loadExtScript("ext:deno_web/01_console.js");

// As in sandbox::ConsoleLevel, by position.
const DEBUG = 0;
const LOG = 1;
const INFO = 2;
const WARN = 3;
const ERROR = 4;
// Deno's printer knows 0 debug, 1 log and info, 2 warn, 3 error.
const levels = [DEBUG, LOG, WARN, ERROR];

let isInfo = false;

function print(text, level) {
  if (StringPrototypeEndsWith(text, "\n")) text = StringPrototypeSlice(text, 0, -1);
  op_sandbox_console(isInfo ? INFO : levels[level] ?? LOG, text);
}

deno.setNoColorFns(() => true, () => true);
const console = new deno.Console(print);

const log = console.info;
ObjectDefineProperty(console, "info", {
  __proto__: null,
  value: function info(...args) {
    isInfo = true;
    try {
      log(...new SafeArrayIterator(args));
    } finally {
      isInfo = false;
    }
  },
  writable: true,
  enumerable: true,
  configurable: true,
});

const consoleError = console.error;

/** Tells the author what went wrong where no one awaits it. */
function report(what, error) {
  try {
    consoleError(what, error);
  } catch {
    op_sandbox_console(ERROR, String(what));
  }
}

const inspectArgs = deno.inspectArgs;

export { console, inspectArgs, report };
