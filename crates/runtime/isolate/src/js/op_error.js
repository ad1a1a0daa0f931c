// Errors for ops that the parent refused.
import { core, primordials } from "ext:core/mod.js";

const { Error, ObjectDefineProperty, ObjectHasOwn, SafeWeakMap, TypeError, WeakMapPrototypeGet, WeakMapPrototypeSet } = primordials;

const refused = new SafeWeakMap();

/** The error to throw for `{name, message, reached}` from the parent. */
function opError(answer) {
  const { name, message } = answer;
  let reached = ObjectHasOwn(answer, "reached") ? answer.reached : undefined;
  // It is sent back as JSON: it must not inherit anything from a tool.
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

/**
 * If `error` is one of these: the parent's name for it, and the reached limit, if any. A tool
 * cannot change either.
 */
function refusal(error) {
  return typeof error === "object" && error !== null ? WeakMapPrototypeGet(refused, error) : undefined;
}

// A failed body arrives as an error of the engine's host, by its name.
const NAMES = ["PermissionDenied", "NotFound", "InvalidArguments", "VersionConflict", "ResourceExhausted", "Unavailable"];
for (let i = 0; i < NAMES.length; i++) {
  core.registerErrorBuilder(NAMES[i], (message) => opError({ name: NAMES[i], message, reached: null }));
}

export { opError, refusal };
