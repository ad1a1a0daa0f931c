// Errors that stand for an op which the parent did not do.
import { primordials } from "ext:core/mod.js";

const { Error, ObjectDefineProperty, SafeWeakMap, TypeError, WeakMapPrototypeGet, WeakMapPrototypeSet } = primordials;

const refused = new SafeWeakMap();

/** The error to throw for `{name, message}` from the parent. */
function opError({ name, message }) {
  let error;
  if (name === "TypeError") {
    error = new TypeError(message);
  } else {
    error = new Error(message);
    ObjectDefineProperty(error, "name", { __proto__: null, value: name, writable: true, configurable: true });
  }
  WeakMapPrototypeSet(refused, error, name);
  return error;
}

/** The name that the parent gave, when `error` is one of these, whatever the tool did to it. */
function opErrorName(error) {
  return typeof error === "object" && error !== null ? WeakMapPrototypeGet(refused, error) : undefined;
}

export { opError, opErrorName };
