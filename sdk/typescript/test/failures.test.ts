/** Every failure is a RcrtError with a cause, whatever is wrong. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { isLargeResult, Rcrt, RcrtError } from "../src/index.js";
import { Scripted } from "./world.js";

/** The failure, which must say what is wrong and where it came from. */
async function failure(act: () => unknown, code: string, message: RegExp): Promise<RcrtError> {
  try {
    await act();
  } catch (error) {
    assert.ok(error instanceof RcrtError, `${String(error)} is not a RcrtError`);
    assert.equal(error.code, code);
    assert.match(error.message, message);
    assert.notEqual(error.cause, undefined, "no cause");
    return error;
  }
  throw new Error("it did not fail");
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
  await failure(() => client.events().next(), "unreachable", /event stream|no answer/);
});

test("the answer of a different server is recognized", async () => {
  const call = { id: "c", function: { name: "calculator", arguments: "{}" } };
  for (const act of [
    (client: Rcrt) => client.call("calculator"),
    (client: Rcrt) => client.callFor("openai", call),
    (client: Rcrt) => client.tools(),
    (client: Rcrt) => client.tool("calculator"),
    (client: Rcrt) => client.listBreadcrumbs(),
    (client: Rcrt) => client.createBreadcrumb({ title: "a" }),
    (client: Rcrt) => client.health(),
    (client: Rcrt) => client.events().next(),
  ]) {
    for (const answer of [{ text: "<html>Welcome to nginx!</html>" }, { json: { message: "ok" } }, { json: null, text: "null" }, { text: "" }]) {
      const server = await Scripted.start({ status: 200, ...answer });
      await failure(() => act(new Rcrt({ url: server.url, token: "t" })), "foreign", /is not from an RCRT server.*is the address right\?/);
      await server.close();
    }
  }
  const server = await Scripted.start({ status: 200, json: { access_token: "x" } });
  await failure(() => new Rcrt({ url: server.url, open: true }).tools(), "foreign", /lacks .*token/);
  await server.close();
});

test("invalid arguments are refused before anything is sent", async () => {
  const server = await Scripted.start();
  const client = new Rcrt({ url: server.url, token: "t" });
  const round: Record<string, unknown> = {};
  round["itself"] = round;
  for (const name of ["", "  ", undefined as unknown as string]) await failure(() => client.call(name), "invalid_argument", /the tool's name must not be empty/);
  await failure(() => client.tool(".."), "invalid_argument", /name must not be empty/);
  await failure(() => client.call("calculator", round), "invalid_argument", /the body is not JSON/);
  await failure(() => client.call("calculator", {}, { traceparent: "a\nb" }), "invalid_argument", /traceparent cannot be sent/);
  await failure(() => new Rcrt({ url: server.url, token: "a\nb" }).tools(), "invalid_argument", /authorization cannot be sent/);
  await failure(() => client.events({ after: "soon" }).next(), "invalid_argument", /after must be the number/);
  await failure(() => client.callFor("openai", { id: "c" } as never), "invalid_argument", /has no name/);
  await failure(() => client.callFor("mcp", undefined as never), "invalid_argument", /has no name/);
  assert.equal(server.requests.length, 0);
  await server.close();
});

test("a failure of the caller's token function has its cause", async () => {
  const why = new Error("the vault is sealed");
  const client = new Rcrt({ url: "http://127.0.0.1:1", token: () => Promise.reject(why) });
  assert.equal((await failure(() => client.tools(), "no_token", /the vault is sealed/)).cause, why);
});

test("a cut result has no parts", async () => {
  const cut = { type: "large_result", text: "a", kind: "text" as const, characters: 9, truncated: true, parts: 0 };
  assert.ok(isLargeResult(cut) && !isLargeResult({ type: "large_result" }) && !isLargeResult(null) && !isLargeResult("a"));
  await failure(() => new Rcrt({ url: "http://127.0.0.1:1", token: "t" }).parts(cut).next(), "no_parts", /call the tool with a session/);
});
