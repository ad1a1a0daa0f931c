// Describes a thrown value of any kind. Getters and proxies of the tool may run here; the call's
// deadline covers them.
import { primordials } from "ext:core/mod.js";
import { op_sandbox_uncaught } from "ext:core/ops";
import { report, shown as inspected } from "ext:sandbox/console.js";
import { refusal } from "ext:sandbox/op_error.js";

const {
  AggregateErrorPrototype, ArrayIsArray, ObjectPrototypeIsPrototypeOf, String, StringPrototypeSlice,
  StringPrototypeToWellFormed,
} = primordials;

const MAX_MESSAGE = 10_000;
const MAX_STACK = 20_000;
const MAX_CAUSES = 5;

/** Truncated, and without lone surrogates, which a message cannot contain. */
function bounded(text, most) {
  return StringPrototypeToWellFormed(text.length > most ? `${StringPrototypeSlice(text, 0, most)}...` : text);
}

function read(value, key) {
  try {
    if (value === null || value === undefined) return undefined;
    const found = value[key];
    return typeof found === "string" ? found : undefined;
  } catch {
    return undefined;
  }
}

function shown(value) {
  try {
    return typeof value === "object" || typeof value === "function" ? inspected(value) : String(value);
  } catch {
    return "a value that cannot be shown";
  }
}

function causeOf(value) {
  try {
    return (typeof value === "object" || typeof value === "function") && value !== null ? value.cause : undefined;
  } catch {
    return undefined;
  }
}

function named(value) {
  const message = read(value, "message");
  return message === undefined ? shown(value) : `${read(value, "name") ?? "object"}: ${message}`;
}

/** The errors of an AggregateError as one text; undefined if there are none. */
function errorsOf(value) {
  try {
    if (!ObjectPrototypeIsPrototypeOf(AggregateErrorPrototype, value)) return undefined;
    const errors = value.errors;
    if (!ArrayIsArray(errors) || errors.length === 0) return undefined;
    let text = errors.length === 1 ? "1 error: " : `${errors.length} errors: `;
    for (let i = 0; i < MAX_CAUSES && i < errors.length; i++) {
      text = `${text}${i > 0 ? "; " : ""}${bounded(named(errors[i]), MAX_MESSAGE)}`;
    }
    return errors.length > MAX_CAUSES ? `${text}; ...` : text;
  } catch {
    return undefined;
  }
}

/** The errors and the causes of this error, nearest first, as one text; undefined if there are none. */
function causes(thrown) {
  let text = errorsOf(thrown);
  let cause = causeOf(thrown);
  for (let i = 0; i < MAX_CAUSES && cause !== undefined; i++) {
    const errors = errorsOf(cause);
    const one = errors === undefined ? named(cause) : `${named(cause)} (${errors})`;
    text = text === undefined ? one : `${text}; caused by ${one}`;
    cause = causeOf(cause);
  }
  return text === undefined ? undefined : bounded(text, MAX_MESSAGE);
}

/**
 * `{name, message, stack, cause, op, reached}`: texts and the reached limit. All except the first
 * two can be undefined.
 */
function describe(thrown) {
  const isObject = (typeof thrown === "object" || typeof thrown === "function") && thrown !== null;
  if (!isObject) {
    return { __proto__: null, name: thrown === null ? "null" : typeof thrown, message: bounded(shown(thrown), MAX_MESSAGE) };
  }
  const message = read(thrown, "message");
  const stack = read(thrown, "stack");
  const refused = refusal(thrown);
  return {
    __proto__: null,
    name: bounded(read(thrown, "name") ?? "object", 200),
    message: bounded(message ?? shown(thrown), MAX_MESSAGE),
    stack: stack === undefined ? undefined : bounded(stack, MAX_STACK),
    cause: causes(thrown),
    op: refused?.name,
    reached: refused?.reached,
  };
}

/** Reports an error that nothing in the tool handles, on the console and to the host. */
function reportUncaught(what, error) {
  report(what, error);
  try {
    const { message, cause } = describe(error);
    op_sandbox_uncaught(message, cause ?? "");
  } catch {
    // The console has it.
  }
}

export { describe, reportUncaught };
