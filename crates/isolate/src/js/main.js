// The one door between the engine's host and the tool: `__sandbox` is taken by the host and removed before tool code
// runs.
import { core, primordials } from "ext:core/mod.js";
import { report, reset } from "ext:sandbox/console.js";
import { makeContext } from "ext:sandbox/context.js";
import { describe } from "ext:sandbox/failure.js";
import { beginTime, forgetChance, refresh } from "ext:sandbox/globals.js";
import { lockdown } from "ext:sandbox/lockdown.js";
import { isInvalid, stringify } from "ext:sandbox/output.js";
import { begin, prepare } from "ext:sandbox/running.js";

const { JSONParse, JSONStringify } = primordials;

core.setReportExceptionCallback((error) => report("Uncaught", error));
core.setUnhandledPromiseRejectionHandler((_promise, reason) => {
  report("Uncaught (in promise)", reason);
  return true;
});

/** Runs `execute`; gives the result's JSON text with a `+` before it, or a failure's with a `-`. */
async function invoke(execute, input, context) {
  begin();
  reset();
  try {
    const result = await execute(JSONParse(input), makeContext(context));
    return `+${stringify(result)}`;
  } catch (thrown) {
    if (isInvalid(thrown)) {
      return `-{"invalid":${JSONStringify({ __proto__: null, message: thrown.message, path: thrown.path })}}`;
    }
    return `-{"thrown":${JSONStringify(describe(thrown))}}`;
  }
}

/** Makes the isolate ready for tool code and gives to the host what runs a call, and what makes it as new again after one
    that was only a rehearsal. */
function start() {
  refresh();
  lockdown();
  prepare();
  return [invoke, renew];
}

/** The isolate is as new. */
function renew() {
  beginTime();
  forgetChance();
  prepare();
}

// What every call runs through is read now, so that it stands in the snapshot.
makeContext('{"request":{"id":""},"secrets":{"NAME":""}}');
stringify({ __proto__: null, text: "", list: [0, null], truth: true });

globalThis.__sandbox = start;
