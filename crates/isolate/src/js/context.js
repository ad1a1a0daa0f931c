// What `execute` gets as its second argument: `{secrets, api, request}`, frozen.
import { primordials } from "ext:core/mod.js";
import { op_sandbox_api } from "ext:core/ops";
import { opError } from "ext:sandbox/op_error.js";

const { JSONParse, JSONStringify, NumberIsSafeInteger, ObjectFreeze, ObjectKeys, StringPrototypeIsWellFormed, TypeError } = primordials;

async function call(method, parameters) {
  const json = JSONStringify({ method, ...parameters }, (key, value) => {
    if (!StringPrototypeIsWellFormed(key) || (typeof value === "string" && !StringPrototypeIsWellFormed(value))) {
      throw new TypeError(`${method}: ${JSONStringify(key)}: the text has half a character (a lone surrogate)`);
    }
    return value;
  });
  const answer = JSONParse(await op_sandbox_api(json));
  if (answer.err !== undefined) throw opError(answer.err);
  return answer.ok;
}

function text(method, name, value) {
  if (typeof value !== "string") throw new TypeError(`${method}: ${name} must be a string`);
  return value;
}

function object(method, name, value) {
  if (typeof value !== "object" || value === null) throw new TypeError(`${method}: ${name} must be an object`);
  return value;
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
      version,
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
    return await call("getSecret", {
      id: text("getSecret", "id", id),
      reason: text("getSecret", "reason", reason ?? ""),
    });
  },
});

function freezeDeep(value) {
  if (typeof value !== "object" || value === null) return value;
  const keys = ObjectKeys(value);
  for (let i = 0; i < keys.length; i++) freezeDeep(value[keys[i]]);
  return ObjectFreeze(value);
}

/** From the JSON text `{request, secrets}`. */
function makeContext(json) {
  const { request, secrets } = JSONParse(json);
  return ObjectFreeze({ secrets: freezeDeep(secrets), api, request: freezeDeep(request) });
}

export { makeContext };
