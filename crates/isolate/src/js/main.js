// The one door between the engine's host and the tool: `__sandbox` is taken by the host and removed before tool code
// runs.
import { core, primordials } from "ext:core/mod.js";
import { report } from "ext:sandbox/console.js";
import { makeContext } from "ext:sandbox/context.js";
import { describe } from "ext:sandbox/failure.js";
import { refresh } from "ext:sandbox/globals.js";
import { Invalid, stringify } from "ext:sandbox/output.js";

const { JSONParse, JSONStringify, ObjectPrototypeIsPrototypeOf } = primordials;
const InvalidPrototype = Invalid.prototype;

core.setReportExceptionCallback((error) => report("Uncaught", error));
core.setUnhandledPromiseRejectionHandler((_promise, reason) => {
  report("Uncaught (in promise)", reason);
  return true;
});

/** Runs `execute`; gives the result's JSON text with a `+` before it, or a failure's with a `-`. */
async function invoke(execute, input, context) {
  try {
    const result = await execute(JSONParse(input), makeContext(context));
    return `+${stringify(result)}`;
  } catch (thrown) {
    if (ObjectPrototypeIsPrototypeOf(InvalidPrototype, thrown)) {
      return `-${JSONStringify({ invalid: { message: thrown.message, path: thrown.path } })}`;
    }
    return `-${JSONStringify({ thrown: describe(thrown) })}`;
  }
}

/** Makes the isolate ready for tool code and gives `invoke` to the host. */
function start() {
  refresh();
  const scope = globalThis;
  const hidden = ["__sandbox", "__bootstrap", "Deno", "SharedArrayBuffer", "Atomics"];
  for (let i = 0; i < hidden.length; i++) delete scope[hidden[i]];
  return invoke;
}

globalThis.__sandbox = start;
