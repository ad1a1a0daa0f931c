// The only interface between the engine's host and the tool: the host takes `__sandbox`, which is
// removed before tool code runs.
import { core, primordials } from "ext:core/mod.js";
import { reset } from "ext:sandbox/console.js";
import { makeContext } from "ext:sandbox/context.js";
import { describe, reportUncaught } from "ext:sandbox/failure.js";
import { beginTime, forgetChance, refresh } from "ext:sandbox/globals.js";
import { clean, harden } from "ext:sandbox/harden.js";
import { lockdown } from "ext:sandbox/lockdown.js";
import { isInvalid, stringify } from "ext:sandbox/output.js";
import { begin, prepare } from "ext:sandbox/running.js";
import { seed } from "ext:sandbox/seed.js";

const { JSONParse, JSONStringify } = primordials;

core.setReportExceptionCallback((error) => reportUncaught("Uncaught", error));
core.setUnhandledPromiseRejectionHandler((_promise, reason) => {
  reportUncaught("Uncaught (in promise)", reason);
  return true;
});

/**
 * Runs `execute`. Returns the result's JSON text with the prefix `+`, or a failure's with the
 * prefix `-`.
 */
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

/**
 * Prepares the isolate for tool code. Returns functions to the host: to run a call, to reset the
 * isolate before its first call and after a rehearsal, to seed its clock and generators, to harden
 * its realm, and to clean that after a call.
 */
function start() {
  refresh();
  lockdown();
  prepare();
  return [invoke, renew, seed, harden, clean];
}

/** Resets the isolate. */
function renew() {
  beginTime();
  forgetChance();
  prepare();
}

// Runs the code of every call once, so that it is part of the snapshot.
makeContext('{"request":{"id":""},"secrets":{"NAME":""}}');
stringify({ __proto__: null, text: "", list: [0, null], truth: true });

globalThis.__sandbox = start;
