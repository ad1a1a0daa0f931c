/** Every failure is a RcrtError with a cause, whatever is wrong. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { isLargeResult, Rcrt, RcrtError } from "../src/index.js";
import { Scripted, type Answer } from "./world.js";

/** The failure, which must say what is wrong and where it came from. */
async function failure(act: () => unknown, code: string, message: RegExp, of = ""): Promise<RcrtError> {
  try {
    await act();
  } catch (error) {
    assert.ok(error instanceof RcrtError, `${of}: ${String(error)} is not a RcrtError`);
    assert.equal(error.code, code, `${of}: ${error.message}`);
    assert.match(error.message, message);
    assert.notEqual(error.cause, undefined, "no cause");
    return error;
  }
  throw new Error(`${of} did not fail`);
}

test("a URL without a scheme is refused with an example", async () => {
  for (const url of ["127.0.0.1:8081", "localhost:8081", "rcrt.example.com", "", "ftp://127.0.0.1"]) {
    await failure(() => new Rcrt({ url, token: "t" }), "invalid_url", /is not a server URL; write it with its scheme, such as http:/);
  }
});

test("a server that does not run is unreachable", async () => {
  const server = await Scripted.start();
  const url = server.url;
  await server.close();
  const client = new Rcrt({ url, token: "t" });
  const error = await failure(() => client.call("calculator"), "unreachable", /no answer from http:.*; is the server running\?/);
  assert.ok(error.retryable);
  await failure(() => new Rcrt({ url, ownerId: "o", agentId: "a", agentKey: "k" }).tools(), "unreachable", /no answer/);
  await failure(() => client.events().next(), "unreachable", /no answer from http:.*; is the server running\?/);
});

const call = { id: "c", function: { name: "calculator", arguments: "{}" } };
const large = { type: "large_result", text: "a", kind: "text" as const, characters: 9, truncated: false, parts: 1, part_prefix: "p" };
const lease = { request: "r", fence: 1 };
const any = {} as never;
const METHODS: Record<string, (client: Rcrt) => Promise<unknown>> = {
  agentSelectors: (client) => client.agentSelectors("a"),
  auditLog: (client) => client.auditLog(),
  call: (client) => client.call("calculator"),
  callFor: (client) => client.callFor("openai", call),
  callStats: (client) => client.callStats(),
  calls: (client) => client.calls(),
  cancelCall: (client) => client.cancelCall("r"),
  changeBreadcrumb: (client) => client.changeBreadcrumb("b", () => undefined),
  claimCalls: (client) => client.claimCalls(any),
  completeCall: (client) => client.completeCall(lease, any),
  createAgent: (client) => client.createAgent(any),
  createBreadcrumb: (client) => client.createBreadcrumb({ title: "a" }),
  createSecret: (client) => client.createSecret(any),
  createSelector: (client) => client.createSelector({}),
  createTool: (client) => client.createTool({}),
  createWebhook: (client) => client.createWebhook("a", any),
  decryptSecret: (client) => client.decryptSecret("s", "why"),
  deleteAgent: (client) => client.deleteAgent("a"),
  deleteBreadcrumb: (client) => client.deleteBreadcrumb("b"),
  deleteDeadLetter: (client) => client.deleteDeadLetter("d"),
  deleteDeadLetters: (client) => client.deleteDeadLetters(),
  deleteSecret: (client) => client.deleteSecret("s"),
  deleteSelector: (client) => client.deleteSelector("s"),
  deleteTenant: (client) => client.deleteTenant("t"),
  deleteWebhook: (client) => client.deleteWebhook("a", "w"),
  drainRunner: (client) => client.drainRunner("r", true),
  eachBreadcrumb: (client) => client.eachBreadcrumb().next(),
  egressLog: (client) => client.egressLog(),
  events: (client) => client.events().next(),
  findTools: (client) => client.findTools("send a message"),
  getAgent: (client) => client.getAgent("a"),
  getBreadcrumb: (client) => client.getBreadcrumb("b"),
  getCall: (client) => client.getCall("r"),
  getFullBreadcrumb: (client) => client.getFullBreadcrumb("b"),
  getHistory: (client) => client.getHistory("b"),
  getTenant: (client) => client.getTenant("t"),
  grantAccess: (client) => client.grantAccess(any),
  grantSecret: (client) => client.grantSecret("s", any),
  health: (client) => client.health(),
  heartbeat: (client) => client.heartbeat([], 1000),
  hygieneStats: (client) => client.hygieneStats(),
  invoke: (client) => client.invoke("calculator"),
  latestEvent: (client) => client.latestEvent(),
  listAgents: (client) => client.listAgents(),
  listBreadcrumbs: (client) => client.listBreadcrumbs(),
  listDeadLetters: (client) => client.listDeadLetters(),
  listGrants: (client) => client.listGrants(),
  listSecrets: (client) => client.listSecrets(),
  listSelectors: (client) => client.listSelectors(),
  listTenants: (client) => client.listTenants(),
  listTokens: (client) => client.listTokens(),
  listWebhooks: (client) => client.listWebhooks("a"),
  parts: (client) => client.parts(large).next(),
  pauseWebhook: (client) => client.pauseWebhook("a", "w"),
  publishTool: (client) => client.publishTool("t"),
  putAgent: (client) => client.putAgent("a", any),
  putTenant: (client) => client.putTenant("t", "name"),
  releaseCall: (client) => client.releaseCall(lease, "unstarted"),
  reportRunner: (client) => client.reportRunner(any),
  resumeWebhook: (client) => client.resumeWebhook("a", "w"),
  retryDeadLetter: (client) => client.retryDeadLetter("d"),
  revokeAccess: (client) => client.revokeAccess(any),
  revokeSecret: (client) => client.revokeSecret("s", "t"),
  revokeTokens: (client) => client.revokeTokens({}),
  rotateAgentKey: (client) => client.rotateAgentKey("a"),
  runHygiene: (client) => client.runHygiene(),
  runners: (client) => client.runners(),
  searchBreadcrumbs: (client) => client.searchBreadcrumbs("a"),
  setWebhookSecret: (client) => client.setWebhookSecret("a", "s"),
  startCall: (client) => client.startCall(lease, 1),
  streamTicket: (client) => client.streamTicket(),
  testTool: (client) => client.testTool({}),
  tool: (client) => client.tool("calculator"),
  toolTypes: (client) => client.toolTypes(),
  tools: (client) => client.tools(),
  toolsFor: (client) => client.toolsFor("mcp"),
  updateBreadcrumb: (client) => client.updateBreadcrumb("b", 1, {}),
  updateSecret: (client) => client.updateSecret("s", {}),
  updateSelector: (client) => client.updateSelector("s", {}),
  validateTool: (client) => client.validateTool({}),
};

async function against(answers: Answer[], act: (client: Rcrt, server: Scripted) => Promise<void>): Promise<void> {
  const server = await Scripted.start(...answers);
  try {
    await act(new Rcrt({ url: server.url, token: "t" }), server);
  } finally {
    await server.close();
  }
}

test("the methods here are all that ask the server", () => {
  const all = Object.getOwnPropertyNames(Rcrt.prototype).filter((name) => name !== "constructor" && name !== "token");
  assert.deepEqual(Object.keys(METHODS), all.sort());
});

test("the answer of a different server is recognized", async () => {
  const texts = ["<html>Welcome to nginx!</html>", '{"message":"ok"}', "null", "", "[7]", "[".repeat(100_000), Uint8Array.of(255, 254, 0)];
  const statuses = [...texts.map((text) => ({ status: 200, text })), { status: 204 }, { status: 205 }];
  for (const [name, act] of Object.entries(METHODS)) {
    await against(statuses, async (client, server) => {
      for (const _ of statuses) await failure(() => act(client), "foreign", /is not from an RCRT server.*is the address right\?/, name);
      assert.equal(server.requests.length, statuses.length);
    });
  }
});

test("a redirect is not followed, and names the other address", async () => {
  for (const [name, act] of Object.entries(METHODS)) {
    await against([{ status: 301, headers: { location: "https://rcrt.example.com/" } }], async (client) => {
      await failure(() => act(client), "foreign", /redirects to https:\/\/rcrt\.example\.com\/, .* own URL/, name);
    });
  }
});

test("the answer of a browser to a redirect has neither status nor address", async () => {
  const hidden = () => Promise.resolve(Response.error());
  await failure(() => new Rcrt({ url: "http://a", token: "t", fetch: hidden }).tools(), "foreign", /redirects to another address/);
});

test("a token that is no token is recognized", async () => {
  const given = { token: 5, expires_in: 3600, exp: 0, id: "i", owner_id: "o", agent_id: "a", profile: "main", roles: [] };
  for (const json of [{ access_token: "x" }, given, { ...given, token: "t", expires_in: null }]) {
    const server = await Scripted.start({ status: 200, json });
    await failure(() => new Rcrt({ url: server.url, open: true }).tools(), "foreign", /token/);
    await server.close();
  }
});

test("a broken answer is unreachable", async () => {
  const cut = { status: 200, headers: { "content-length": "1000" }, text: "{}", broken: true };
  const packed = { status: 200, headers: { "content-encoding": "gzip" }, text: "not gzip" };
  await against([cut, packed], async (client) => {
    for (let n = 0; n < 2; n++) await failure(() => client.updateBreadcrumb("b", 1, {}), "unreachable", /no answer from http/);
  });
});

test("a refusal with an unknown status or pause is a problem", async () => {
  for (const [status, pause] of [[400, "soon"], [400, "9".repeat(400)], [999, "-1"]] as const) {
    await against([{ status, text: "[", headers: { "retry-after": pause } }], async (client) => {
      await failure(() => client.listSecrets(), "foreign", /and not from an RCRT server/);
    });
  }
});

test("a request has a time limit, and none when it is infinite", async () => {
  await against([{ status: 200, text: "[", open: true }], async (client) => {
    const error = await failure(() => client.updateBreadcrumb("b", 1, {}, { timeoutMs: 50 }), "unreachable", /no response in 50 ms/);
    assert.ok(error.retryable);
  });
  await against([{ status: 200, json: [] }], async (client) => {
    assert.deepEqual(await client.listSecrets({ timeoutMs: Infinity }), []);
  });
});

test("whatever the caller's own fetch throws is unreachable", async () => {
  for (const thrown of [undefined, null, "text", new Error("proxy"), new TypeError("fetch failed", { cause: new Error("bad port") }), { cause: { code: 5 } }]) {
    const client = new Rcrt({ url: "http://a", token: "t", fetch: () => Promise.reject(thrown) });
    const error = await failure(() => client.updateBreadcrumb("b", 1, {}), "unreachable", /no answer from http:\/\/a/);
    assert.ok(!error.message.includes("fetch failed"), error.message);
  }
});

test("invalid arguments are refused before anything is sent", async () => {
  const server = await Scripted.start();
  const client = new Rcrt({ url: server.url, token: "t" });
  const round: Record<string, unknown> = {};
  round["itself"] = round;
  for (const name of ["", "  ", undefined as unknown as string]) await failure(() => client.call(name), "invalid_argument", /the tool's name must not be empty/);
  await failure(() => client.tool(".."), "invalid_argument", /name must not be empty/);
  await failure(() => client.call("calculator", round), "invalid_argument", /the body is not JSON/);
  for (const value of [() => 1, Symbol("a")]) await failure(() => client.createBreadcrumb(value as never), "invalid_argument", /the body is not JSON/);
  for (const waitMs of [-1, NaN, "5" as never]) await failure(() => client.call("calculator", {}, { waitMs }), "invalid_argument", /waitMs must be milliseconds/);
  for (const timeoutMs of [0, NaN]) await failure(() => client.listAgents({ timeoutMs }), "invalid_argument", /timeoutMs must be milliseconds/);
  for (const silenceMs of [0, NaN]) await failure(() => client.events({ silenceMs }).next(), "invalid_argument", /silenceMs must be milliseconds/);
  await failure(() => client.getBreadcrumb("\ud800"), "invalid_argument", /id is not text that can be in a URL/);
  await failure(() => client.events({ filters: round }).next(), "invalid_argument", /filters is not JSON/);
  await failure(() => client.listBreadcrumbs({ contextMatch: round as never }), "invalid_argument", /contextMatch is not JSON/);
  await failure(() => client.searchBreadcrumbs(undefined, { qvec: 5n as never }), "invalid_argument", /qvec is not JSON/);
  for (const limit of [0, 1001]) await failure(() => client.eachBreadcrumb({ limit }).next(), "invalid_argument", /limit must be/);
  await failure(() => client.call("calculator", {}, { traceparent: "a\nb" }), "invalid_argument", /traceparent cannot be sent/);
  await failure(() => new Rcrt({ url: server.url, token: "a\nb" }).tools(), "invalid_argument", /authorization cannot be sent/);
  await failure(() => client.events({ after: "soon" }).next(), "invalid_argument", /after must be the number/);
  await failure(() => client.callFor("openai", { id: "c" } as never), "invalid_argument", /has no name: give one of a message's tool_calls.*it is an object with id/);
  await failure(() => client.callFor("mcp", undefined as never), "invalid_argument", /has no name: give the params of tools\/call.*it is undefined/);
  await failure(() => client.callFor("openAI" as never, call), "invalid_argument", /format must be openai, openai-responses, anthropic, mcp; it is "openAI"/);
  assert.equal(server.requests.length, 0);
  await server.close();
  const url = "http://127.0.0.1:1";
  for (const token of [undefined as never, "", " ", 5 as never]) await failure(() => new Rcrt({ url, token }), "invalid_argument", /the token is .*`rcrt token` prints one/);
  for (const none of [{}, { open: false }]) await failure(() => new Rcrt({ url, ...none } as never), "invalid_argument", /give a token, an agentKey/);
  await failure(() => new Rcrt(undefined as never), "invalid_url", /is not a server URL/);
});

test("a misspelled option is refused, with the option that was meant", async () => {
  const server = await Scripted.start();
  const client = new Rcrt({ url: server.url, token: "t" });
  const wrong = (options: object): never => options as never;
  for (const [act, hint] of [
    [() => client.call("echo", {}, wrong({ sesion: "s" })), /sesion is not an option; did you mean session\?/],
    [() => client.invoke("echo", {}, wrong({ max_result_chars: 5 })), /did you mean maxResultChars\?/],
    [() => client.callFor("openai", call, wrong({ seession: "s" })), /did you mean session\?/],
    [() => client.parts(large, wrong({ wait: 5 })).next(), /wait is not an option; expected one of signal, waitMs/],
    [() => client.createTool({}, wrong({ if_version: 3 })), /did you mean ifVersion\?/],
    [() => client.testTool({}, wrong({ waitMS: 3 })), /did you mean waitMs\?/],
    [() => client.events(wrong({ filter: {} })).next(), /filter is not an option; did you mean filters\?/],
    [() => client.listBreadcrumbs(wrong({ schema_name: "a" })), /did you mean schemaName\?/],
    [() => client.eachBreadcrumb(wrong({ tags: "a" })).next(), /did you mean tag\?/],
    [() => client.searchBreadcrumbs("a", wrong({ limit: 5 })), /limit is not an option; expected one of .*nn/],
    [() => client.createBreadcrumb({ title: "a" }, wrong({ idempotencykey: "k" })), /did you mean idempotencyKey\?/],
    [() => client.toolsFor("openai", wrong({ proflie: "main" })), /did you mean profile\?/],
    [() => client.findTools("a", wrong({ proflie: "main" })), /did you mean profile\?/],
    [() => client.getBreadcrumb("b", wrong({ timeout: 5 })), /timeout is not an option; expected one of signal, timeoutMs/],
    [() => client.listAgents("now" as never), /options must be an object|is not an option/],
    [() => new Rcrt(wrong({ url: server.url, token: "t", retryMS: 5 })), /did you mean retryMs\?/],
  ] as const) {
    await failure(act, "invalid_argument", hint);
  }
  assert.equal(server.requests.length, 0);
  await server.close();
});

test("a name that no tool can have is a message for the model", async () => {
  const server = await Scripted.start();
  const client = new Rcrt({ url: server.url, token: "t" });
  for (const name of ["", " ", ".", "..", "x".repeat(500), "\ud800", "a\0b"]) {
    const message = await client.callFor("openai", { id: "c1", function: { name } });
    assert.deepEqual([message.role, message.tool_call_id], ["tool", "c1"]);
    assert.match(message.content, /^ToolNotFound: there is no tool named "/);
  }
  assert.equal((await client.callFor("openai-responses", { call_id: "c2", name: ".." })).call_id, "c2");
  assert.equal((await client.callFor("openai", { call_id: "c3", name: ".." })).type, "function_call_output");
  const block = await client.callFor("anthropic", { type: "tool_use", id: "t1", name: ".." });
  assert.deepEqual([block.tool_use_id, block.is_error], ["t1", true]);
  const result = await client.callFor("mcp", { name: ".." });
  assert.deepEqual([result.isError, result.content[0]?.text], [true, 'ToolNotFound: there is no tool named ".."']);
  assert.equal(server.requests.length, 0);
  await server.close();
});

test("a failure of the caller's token function has its cause", async () => {
  const why = new Error("the vault is sealed");
  const client = new Rcrt({ url: "http://127.0.0.1:1", token: () => Promise.reject(why) });
  assert.equal((await failure(() => client.tools(), "no_token", /the vault is sealed/)).cause, why);
  for (const none of [undefined, null, "", 5]) {
    await failure(() => new Rcrt({ url: "http://127.0.0.1:1", token: () => none as never }).tools(), "no_token", /the function token returned/);
  }
});

test("a cut result has no parts", async () => {
  const cut = { type: "large_result", text: "a", kind: "text" as const, characters: 9, truncated: true, parts: 0 };
  assert.ok(isLargeResult(cut) && !isLargeResult({ type: "large_result" }) && !isLargeResult(null) && !isLargeResult("a"));
  const client = new Rcrt({ url: "http://127.0.0.1:1", token: "t" });
  await failure(() => client.parts(cut).next(), "no_parts", /call the tool with a session/);
  for (const other of [{ result: 42 }, "a", null]) await failure(() => client.parts(other as never).next(), "invalid_argument", /this is not a large result/);
});
