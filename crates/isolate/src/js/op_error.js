// Errors that stand for an op which the parent did not do.
import { core, primordials } from "ext:core/mod.js";

const { Error, ObjectDefineProperty, ObjectHasOwn, SafeWeakMap, TypeError, WeakMapPrototypeGet, WeakMapPrototypeSet } = primordials;

const refused = new SafeWeakMap();

/** The error to throw for `{name, message, reached}` from the parent. */
function opError(told) {
  const { name, message } = told;
  let reached = ObjectHasOwn(told, "reached") ? told.reached : undefined;
  // It goes back as JSON: nothing of a tool's may stand behind it.
  if (reached) reached = { __proto__: null, limit: reached.limit, allowed: reached.allowed };
  let error;
  if (name === "TypeError") {
    error = new TypeError(message);
  } else {
    error = new Error(message);
    ObjectDefineProperty(error, "name", { __proto__: null, value: name, writable: true, configurable: true });
  }
  WeakMapPrototypeSet(refused, error, { __proto__: null, name, reached });
  return error;
}

/** The name that the parent gave, and the bound that was reached if any, when `error` is one of these, whatever the
 * tool did to it. */
function refusal(error) {
  return typeof error === "object" && error !== null ? WeakMapPrototypeGet(refused, error) : undefined;
}

// What breaks a body off comes as an error of the engine's host, by its name.
const NAMES = ["PermissionDenied", "NotFound", "InvalidArguments", "VersionConflict", "ResourceExhausted", "Unavailable"];
for (let i = 0; i < NAMES.length; i++) {
  core.registerErrorBuilder(NAMES[i], (message) => opError({ name: NAMES[i], message, reached: null }));
}

export { opError, refusal };
