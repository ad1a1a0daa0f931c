// What `execute` gets as its second argument: `{secrets, api, request, progress, utils}`, frozen.
import { primordials } from "ext:core/mod.js";
import { op_sandbox_api, op_sandbox_progress } from "ext:core/ops";
import { opError } from "ext:sandbox/op_error.js";
import { isOver, mustRun } from "ext:sandbox/running.js";

const { JSONParse, JSONStringify, NumberIsSafeInteger, ObjectDefineProperty, ObjectFreeze, ObjectHasOwn, ObjectKeys, String, StringPrototypeIsWellFormed, StringPrototypeSlice, StringPrototypeToWellFormed, TypeError } = primordials;

/** JSON text of one argument. */
function json(method, name, value) {
  const text = JSONStringify(value, (key, value) => {
    if (!StringPrototypeIsWellFormed(key) || (typeof value === "string" && !StringPrototypeIsWellFormed(value))) {
      throw new TypeError(`${method}: ${JSONStringify(key || name)}: the text has half a character (a lone surrogate)`);
    }
    return value;
  });
  if (text === undefined) throw new TypeError(`${method}: ${name} is no JSON`);
  return text;
}

/** `parameters` are texts of JSON by name. They are joined as text, so that no `toJSON` of a tool sees the call. */
async function call(method, parameters) {
  mustRun();
  let message = `{"method":"${method}"`;
  const names = ObjectKeys(parameters);
  for (let i = 0; i < names.length; i++) message += `,"${names[i]}":${parameters[names[i]]}`;
  const answer = JSONParse(await op_sandbox_api(`${message}}`));
  if (ObjectHasOwn(answer, "err")) throw opError(answer.err);
  return answer.ok;
}

function text(method, name, value) {
  if (typeof value !== "string") throw new TypeError(`${method}: ${name} must be a string`);
  return json(method, name, value);
}

function object(method, name, value) {
  if (typeof value !== "object" || value === null) throw new TypeError(`${method}: ${name} must be an object`);
  return json(method, name, value);
}

/** A text that is one wherever a text is wanted, and has it as `value` too, as RCRT's tools expect. */
function secretText(value) {
  return ObjectFreeze(ObjectDefineProperty(new String(value), "value", { __proto__: null, value, enumerable: true }));
}

async function getSecret(method, id, reason) {
  return secretText(await call("getSecret", {
    id: text(method, "id", id),
    reason: text(method, "reason", reason ?? ""),
  }));
}

const api = ObjectFreeze({
  async getBreadcrumb(id) {
    return await call("getBreadcrumb", { id: text("getBreadcrumb", "id", id) });
  },
  async createBreadcrumb(record) {
    return await call("createBreadcrumb", { record: object("createBreadcrumb", "the record", record) });
  },
  async updateBreadcrumb(id, version, changes) {
    if (!NumberIsSafeInteger(version)) {
      throw new TypeError("updateBreadcrumb: version must be the number of the version you saw");
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
  async getSecret(id, reason) {
    return await getSecret("getSecret", id, reason);
  },
  /** Another name of `getSecret`. */
  async decryptSecret(id, reason) {
    return await getSecret("decryptSecret", id, reason);
  },
});

const MAX_PROGRESS_MESSAGE = 500;

const { progress } = {
  /** Tells how far the call is, and waits for nobody: of words that come quickly the newest counts. */
  progress(fraction = undefined, message = undefined) {
    if (typeof fraction !== "number" && fraction !== undefined && fraction !== null) {
      throw new TypeError("progress: fraction must be a number from 0 to 1, or null where it is not known");
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

/** RCRT's tools look here whether the runtime can wait for events within a call. */
const utils = ObjectFreeze({ waitForEventSupported: false });

/** From the JSON text `{request, secrets}`. */
function makeContext(json) {
  const { request, secrets } = JSONParse(json);
  return ObjectFreeze({ secrets: freezeDeep(secrets), api, request: freezeDeep(request), progress, utils });
}

export { makeContext };
