// What `execute` gets as its second argument: `{secrets, api, request, progress, utils}`, frozen.
import { primordials } from "ext:core/mod.js";
import { op_sandbox_api, op_sandbox_progress } from "ext:core/ops";
import { opError } from "ext:sandbox/op_error.js";
import { isOver, mustRun } from "ext:sandbox/running.js";

const { Error, JSONParse, JSONStringify, NumberIsSafeInteger, ObjectDefineProperty, ObjectFreeze, ObjectHasOwn, ObjectKeys, String, StringPrototypeIsWellFormed, StringPrototypeSlice, StringPrototypeToWellFormed, TypeError } = primordials;

/** JSON text of one argument. */
function json(method, name, value) {
  const text = JSONStringify(value, (key, value) => {
    if (!StringPrototypeIsWellFormed(key) || (typeof value === "string" && !StringPrototypeIsWellFormed(value))) {
      throw new TypeError(`${method}: ${JSONStringify(key || name)}: the text has a lone surrogate (half of a character)`);
    }
    return value;
  });
  if (text === undefined) throw new TypeError(`${method}: ${name} is not valid JSON`);
  return text;
}

/**
 * `parameters` are JSON texts by name. They are joined as text, so that a tool's `toJSON` is not
 * called.
 */
async function call(method, parameters) {
  mustRun();
  let message = `{"method":"${method}"`;
  const names = ObjectKeys(parameters);
  for (let i = 0; i < names.length; i++) message += `,"${names[i]}":${parameters[names[i]]}`;
  const reply = JSONParse(await op_sandbox_api(`${message}}`));
  if (ObjectHasOwn(reply, "err")) throw opError(reply.err);
  return reply.ok;
}

function text(method, name, value) {
  if (typeof value !== "string") throw new TypeError(`${method}: ${name} must be a string`);
  return json(method, name, value);
}

function object(method, name, value) {
  if (typeof value !== "object" || value === null) throw new TypeError(`${method}: ${name} must be an object`);
  return json(method, name, value);
}

/**
 * A string object that works wherever a string does. It also has the text as `value`, as RCRT's
 * tools expect.
 */
function secretText(value) {
  return ObjectFreeze(ObjectDefineProperty(new String(value), "value", { __proto__: null, value, enumerable: true }));
}

async function getSecret(method, id, reason) {
  return secretText(await call("getSecret", {
    id: text(method, "id", id),
    reason: text(method, "reason", reason ?? ""),
  }));
}

/** What `callTool` throws: `code`, `reason` (the tool's own message) and the others say what failed. */
function callError(failure) {
  const { code, message, tool, requestId, details, is_retryable: retryable } = failure;
  const error = new Error(`the tool ${tool} failed with ${code}: ${message}`);
  const fields = { __proto__: null, code, reason: message, tool, requestId, details, retryable };
  const names = ObjectKeys(fields);
  for (let i = 0; i < names.length; i++) {
    ObjectDefineProperty(error, names[i], { __proto__: null, value: fields[names[i]], enumerable: true });
  }
  return error;
}

const api = ObjectFreeze({
  async getBreadcrumb(id) {
    return await call("getBreadcrumb", { id: text("getBreadcrumb", "id", id) });
  },
  /** The record as a model sees it: `llm_hints` are applied. */
  async viewBreadcrumb(id) {
    return await call("viewBreadcrumb", { id: text("viewBreadcrumb", "id", id) });
  },
  async createBreadcrumb(record) {
    return await call("createBreadcrumb", { record: object("createBreadcrumb", "the record", record) });
  },
  async updateBreadcrumb(id, version, changes) {
    if (!NumberIsSafeInteger(version)) {
      throw new TypeError("updateBreadcrumb: version must be an integer: the version that you read");
    }
    return await call("updateBreadcrumb", {
      id: text("updateBreadcrumb", "id", id),
      version: `${version}`,
      changes: object("updateBreadcrumb", "changes", changes),
    });
  },
  async deleteBreadcrumb(id) {
    return await call("deleteBreadcrumb", { id: text("deleteBreadcrumb", "id", id) });
  },
  async searchBreadcrumbs(query = {}) {
    return await call("searchBreadcrumbs", { query: object("searchBreadcrumbs", "the query", query) });
  },
  async vectorSearch(query) {
    return await call("vectorSearch", { query: object("vectorSearch", "the query", query) });
  },
  /** Calls another tool, and returns its output. */
  async callTool(tool, input = {}, options = {}) {
    const result = await call("callTool", {
      tool: text("callTool", "tool", tool),
      input: json("callTool", "input", input),
      options: object("callTool", "options", options),
    });
    if (ObjectHasOwn(result, "failure")) throw callError(result.failure);
    return result.output;
  },
  async getSecret(id, reason) {
    return await getSecret("getSecret", id, reason);
  },
  /** An alias of `getSecret`. */
  async decryptSecret(id, reason) {
    return await getSecret("decryptSecret", id, reason);
  },
});

const MAX_PROGRESS_MESSAGE = 500;

const { progress } = {
  /** Reports progress without waiting. Of reports in quick succession the newest is sent. */
  progress(fraction = undefined, message = undefined) {
    if (typeof fraction !== "number" && fraction !== undefined && fraction !== null) {
      throw new TypeError("progress: fraction must be a number from 0 to 1, or null if it is not known");
    }
    if (typeof message !== "string" && message !== undefined && message !== null) {
      throw new TypeError("progress: message must be a string");
    }
    if (isOver()) return;
    op_sandbox_progress(fraction ?? NaN, StringPrototypeToWellFormed(StringPrototypeSlice(message ?? "", 0, MAX_PROGRESS_MESSAGE)));
  },
};
ObjectFreeze(progress);

function freezeDeep(value) {
  if (typeof value !== "object" || value === null) return value;
  const keys = ObjectKeys(value);
  for (let i = 0; i < keys.length; i++) freezeDeep(value[keys[i]]);
  return ObjectFreeze(value);
}

/** RCRT's tools check here whether the runtime can wait for events within a call. */
const utils = ObjectFreeze({ waitForEventSupported: false });

/** Makes the context from the JSON text `{request, secrets}`. */
function makeContext(json) {
  const { request, secrets } = JSONParse(json);
  return ObjectFreeze({ secrets: freezeDeep(secrets), api, request: freezeDeep(request), progress, utils });
}

export { makeContext };
