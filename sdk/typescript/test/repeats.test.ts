/** Which requests are retried, and which are not. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { ProblemError, Rcrt, RcrtError, Unreachable } from "../src/index.js";
import { problem, Scripted, type Answer } from "./world.js";

async function against(answers: Answer[], act: (client: Rcrt, server: Scripted) => Promise<void>): Promise<void> {
  const server = await Scripted.start(...answers);
  try {
    await act(new Rcrt({ url: `${server.url}/behind/`, token: "t" }), server);
  } finally {
    await server.close();
  }
}

const created = { status: 201, json: { id: "x", version: 1, replayed: true } };
const record = { title: "a", context: {}, tags: [] };
const changed = { ...record, id: "x", owner_id: "o", version: 4, checksum: "c", created_at: "", updated_at: "" };

test("a create whose response is lost is retried with the same key", async () => {
  await against(["cut", problem(503, "unavailable"), created], async (client, server) => {
    const answer = await client.createBreadcrumb(record);
    assert.deepEqual(answer, { id: "x", version: 1, replayed: false });
    const keys = server.requests.map((request) => request.headers["idempotency-key"]);
    assert.equal(keys.length, 3);
    assert.equal(new Set(keys).size, 1);
    assert.match(String(keys[0]), /^[0-9a-f]{32}$/);
    assert.deepEqual(new Set(server.requests.map((one) => `${one.method} ${one.url} ${one.body}`)), new Set([`POST /behind/breadcrumbs ${JSON.stringify(record)}`]));
  });
});

test("the caller's own key is used, and a replay is reported", async () => {
  await against([created], async (client, server) => {
    assert.equal((await client.createBreadcrumb(record, { idempotencyKey: "mine" })).replayed, true);
    assert.equal(server.requests[0]?.headers["idempotency-key"], "mine");
  });
});

test("a change whose response is lost is not retried", async () => {
  await against(["cut", { status: 200 }], async (client, server) => {
    await assert.rejects(client.updateBreadcrumb("x", 3, { title: "b" }), (error) => error instanceof Unreachable && error.retryable);
    assert.equal(server.requests.length, 1);
    assert.equal(server.requests[0]?.headers["if-match"], '"3"');
  });
});

test("a rate-limited request is retried after the server's pause", async () => {
  await against([problem(429, "rate_limited", { "retry-after": "1" }), { status: 200, json: changed }], async (client, server) => {
    const begun = performance.now();
    assert.equal((await client.updateBreadcrumb("x", 3, { title: "b" })).version, 4);
    assert.ok(performance.now() - begun >= 990);
    assert.equal(server.requests.length, 2);
  });
});

test("a pause that is too long is an error", async () => {
  await against([problem(429, "rate_limited", { "retry-after": "3600" })], async (client, server) => {
    await assert.rejects(client.listBreadcrumbs(), (error) => error instanceof ProblemError && error.retryAfterMs === 3_600_000 && error.retryable);
    assert.equal(server.requests.length, 1);
  });
});

test("a refusal is reported at once", async () => {
  const violations = [{ field: "title", message: "is required" }];
  const refusal = { status: 400, headers: { "x-request-id": "r1" }, json: { type: "/docs#problem-invalid", title: "Invalid input", status: 400, detail: "title: is required", code: "invalid", violations } };
  await against([refusal], async (client, server) => {
    await assert.rejects(client.createBreadcrumb(record), (error) => {
      assert.ok(error instanceof ProblemError && error instanceof RcrtError);
      assert.deepEqual([error.code, error.status, error.retryable, error.requestId], ["invalid", 400, false, "r1"]);
      assert.deepEqual(error.violations, violations);
      return true;
    });
    assert.equal(server.requests.length, 1);
  });
});

test("a response that is not a problem document has a clear error", async () => {
  await against([{ status: 418, text: "<html>teapot" }], async (client) => {
    await assert.rejects(client.listBreadcrumbs(), (error) => error instanceof ProblemError && error.code === "foreign" && /is the address right/.test(error.message));
  });
  await against([{ status: 200, text: "<html>" }], async (client) => {
    await assert.rejects(client.listBreadcrumbs(), (error) => error instanceof RcrtError && error.code === "foreign" && error.cause instanceof SyntaxError);
  });
});

test("a retried deletion that finds nothing succeeds, a first attempt does not", async () => {
  await against(["cut", problem(404, "not_found")], (client) => client.deleteBreadcrumb("x"));
  await against([problem(404, "not_found")], (client) => assert.rejects(client.deleteBreadcrumb("x"), { code: "not_found" }));
});

test("an unreachable server is reported, also for requests that are not retried", async () => {
  const server = await Scripted.start();
  const url = server.url;
  await server.close();
  await assert.rejects(new Rcrt({ url, token: "t" }).updateBreadcrumb("x", 1, { title: "b" }), Unreachable);
});

const cuts = (count: number): Answer[] => Array.from({ length: count }, () => "cut");

test("a server that has answered is tried again for longer than one that never did", async () => {
  const found = { status: 200, json: [] };
  await against([found, ...cuts(6), found], async (client, server) => {
    await client.listBreadcrumbs();
    await client.listBreadcrumbs();
    assert.equal(server.requests.length, 8);
  });
  for (const [answers, retryMs, requests] of [[[found], 0, 7], [[], Infinity, 6]] as const) {
    const server = await Scripted.start(...answers, ...cuts(20));
    try {
      const client = new Rcrt({ url: server.url, token: "t", retryMs });
      if (answers.length > 0) await client.listBreadcrumbs();
      await assert.rejects(client.listBreadcrumbs(), (error) => error instanceof Unreachable && /is the server running/.test(error.message));
      assert.equal(server.requests.length, requests);
    } finally {
      await server.close();
    }
  }
  assert.throws(() => new Rcrt({ url: "http://a", token: "t", retryMs: -1 }), { code: "invalid_argument" });
});

test("a signal stops the pause between two attempts", async () => {
  await against([problem(503, "unavailable", { "retry-after": "50" })], async (client, server) => {
    const giveUp = new AbortController();
    const asked = client.listBreadcrumbs({ signal: giveUp.signal });
    asked.catch(() => {});
    while (server.requests.length === 0) await new Promise((resolve) => setImmediate(resolve));
    giveUp.abort(new Error("enough"));
    await assert.rejects(asked, /enough/);
    assert.equal(server.requests.length, 1);
  });
});

test("a path segment cannot be empty, . or ..", async () => {
  await against([], async (client, server) => {
    for (const id of ["", ".", ".."]) await assert.rejects(client.getBreadcrumb(id), { name: "RcrtError", code: "invalid_argument" });
    assert.equal(server.requests.length, 0);
  });
});

test("a token is fetched once for many, and renewed when the server refuses it", async () => {
  const given = (token: string) => ({ status: 200, json: { token, expires_in: 3600, exp: 0, owner_id: "o", agent_id: "a", roles: [], profile: "main" } });
  const server = await Scripted.start(given("one"), { status: 200, json: [] }, problem(401, "unauthorized"), given("two"), { status: 200, json: [] }, problem(401, "unauthorized"), given("three"), problem(401, "unauthorized"));
  try {
    const client = new Rcrt({ url: server.url, ownerId: "o", agentId: "a", agentKey: "k" });
    await client.listBreadcrumbs();
    assert.equal(server.requests[0]?.body, JSON.stringify({ owner_id: "o", agent_id: "a", agent_key: "k" }));
    await client.listBreadcrumbs();
    // The second refusal in a row is reported.
    await assert.rejects(client.listBreadcrumbs(), { code: "unauthorized" });
    assert.deepEqual(server.requests.map((one) => one.headers.authorization ?? one.url), ["/auth/token", "Bearer one", "Bearer one", "/auth/token", "Bearer two", "Bearer two", "/auth/token", "Bearer three"]);
  } finally {
    await server.close();
  }
});
