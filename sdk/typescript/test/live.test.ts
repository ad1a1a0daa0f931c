/** The client against the running server. */
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { isLargeResult, largeResult, ProblemError, Rcrt, StillRunning, ToolError, type BreadcrumbEvent } from "../src/index.js";
import { curator, OwnServer, url, word } from "./world.js";

test("a record is created, changed and deleted", async () => {
  const client = curator();
  const tag = word();
  const { id, version, replayed } = await client.createBreadcrumb({ title: "first", tags: [tag], schema_name: "note.v1", context: { text: `whales ${tag}` } });
  assert.deepEqual([version, replayed], [1, false]);
  const short = await client.getBreadcrumb(id);
  assert.equal(short.title, "first");
  assert.ok(!("owner_id" in short));
  assert.ok((await client.getFullBreadcrumb(id)).owner_id);

  const changed = await client.updateBreadcrumb(id, 1, { title: "second" });
  assert.equal(changed.version, 2);
  await assert.rejects(client.updateBreadcrumb(id, 1, { title: "stale" }), (error) => {
    assert.ok(error instanceof ProblemError);
    assert.deepEqual([error.code, error.problem.expected, error.problem.actual, error.retryable], ["version_conflict", 1, 2, false]);
    return true;
  });
  assert.deepEqual((await client.getHistory(id)).map((one) => one.version), [2, 1]);
  assert.deepEqual((await client.listBreadcrumbs({ tag, schemaName: "note.v1" })).map((one) => one.title), ["second"]);
  assert.deepEqual((await client.listBreadcrumbs({ anyTag: [word(), tag], includeContext: true }))[0]?.context, { text: `whales ${tag}` });
  assert.ok((await client.searchBreadcrumbs(tag, { tag })).some((one) => one.id === id));
  await assert.rejects(client.deleteBreadcrumb(id, 1), { code: "version_conflict" });
  await client.deleteBreadcrumb(id, 2);
  await assert.rejects(client.getBreadcrumb(id), { code: "not_found", status: 404 });
});

test("concurrent changes are all applied", async () => {
  const client = curator();
  const { id } = await client.createBreadcrumb({ title: "a counter", tags: [], context: { count: 0 } });
  const change = () => client.changeBreadcrumb(id, (record) => ({ context: { count: Number(record.context["count"]) + 1 } }), { attempts: 50 });
  await Promise.all(Array.from({ length: 8 }, change));
  const record = await client.getFullBreadcrumb(id);
  assert.deepEqual([record.context, record.version], [{ count: 8 }, 9]);
});

test("paging returns each record once", async () => {
  const client = curator();
  const tag = word();
  for (let n = 0; n < 7; n++) await client.createBreadcrumb({ title: String(n), tags: [tag], context: {} });
  const titles: string[] = [];
  for await (const one of client.eachBreadcrumb({ tag, limit: 3 })) titles.push(one.title);
  assert.deepEqual(titles.sort(), ["0", "1", "2", "3", "4", "5", "6"]);
});

test("errors of a record name each field", async () => {
  const bad = { title: "", tags: [], context: {}, colour: "red" };
  await assert.rejects(curator().createBreadcrumb(bad), (error) => error instanceof ProblemError && error.violations[0]?.field === "colour");
});

test("a tool is called, and its failures are reported", async () => {
  const client = curator();
  assert.deepEqual(await client.call("calculator", { expression: "6 * 7" }), { result: 42, expression: "6 * 7" });
  await assert.rejects(client.call("calculator", { expression: "1/0" }), (error) => {
    assert.ok(error instanceof ToolError);
    assert.deepEqual([error.code, error.response.status], ["ExecutionFailed", "error"]);
    return true;
  });
  assert.equal((await client.invoke("calculator", { expression: 5 })).error_code, "InvalidArguments");
  const names = (await client.tools()).tools.map((tool) => tool.name);
  assert.ok(names.includes("calculator"));
  assert.ok(Array.isArray(await client.toolsFor("openai")));
  const some = (await client.toolsFor("anthropic", { tool: ["calculator", "echo"] })).map((tool) => tool.name);
  assert.ok(some.includes("calculator") && some.includes("echo") && !some.includes("random"), some.join());
  const found = await client.findTools("evaluate an arithmetic expression", { limit: 3 });
  assert.equal(found.tools[0]?.name, "calculator");
  assert.ok(found.tools[0].score > 0 && found.tools[0].score <= 1);
  assert.equal(found.hints[0]?.type, "family");
  await assert.rejects(client.tool("calculater"), (error) => error instanceof ProblemError && (error.problem.nearest ?? []).includes("calculator"));
});

test("a call names the version that must run", async () => {
  const client = curator();
  const input = { expression: "6 * 7" };
  const pins = async (options: { version?: number; definitionHash?: string }) => {
    const { status, error_code, metadata } = await client.invoke("calculator", input, options);
    const { tool_version, definition_hash } = metadata as { tool_version?: number; definition_hash?: string };
    return { ended: error_code ?? status, tool_version, definition_hash };
  };
  const { tool_version, definition_hash } = await pins({});
  assert.ok(tool_version !== undefined && definition_hash !== undefined);
  assert.deepEqual(await pins({ version: tool_version }), { ended: "success", tool_version, definition_hash });
  assert.deepEqual(await pins({ definitionHash: definition_hash }), { ended: "success", tool_version, definition_hash });
  assert.equal((await pins({ version: 9999 })).ended, "ToolNotFound");
  assert.equal((await pins({ definitionHash: `sha256:${"0".repeat(64)}` })).ended, "ToolNotFound");
});

test("live runners are listed", async () => {
  const client = curator();
  const [runner, ...others] = await client.runners();
  assert.ok(runner !== undefined && others.length === 0 && !runner.draining && runner.slots.worker.free > 0);
  const { metadata } = await client.invoke("calculator", { expression: "1" });
  assert.equal((metadata as { runner_id?: string }).runner_id, runner.runner_id);
});

test("a call continues after the caller stops waiting, and the same key waits again", async () => {
  const client = curator();
  const tag = word();
  const input = { ms: 2500 };
  let key = "";
  await assert.rejects(client.invoke("timer", input, { waitMs: 1000, requestId: tag }), (error) => {
    assert.ok(error instanceof StillRunning);
    key = error.idempotencyKey;
    return true;
  });
  const answer = await client.invoke("timer", input, { idempotencyKey: key, requestId: tag });
  assert.deepEqual([answer.status, answer.request_id], ["success", tag]);
  assert.equal((await client.listBreadcrumbs({ tag: `request:${tag}`, schemaName: "tool.response.v1" })).length, 1);
});

test("an abandoned call is cancelled on request", async () => {
  const client = curator();
  const requestId = word();
  const giveUp = new AbortController();
  const begun = (async () => {
    for (;;) if ((await client.listBreadcrumbs({ schemaName: "tool.request.v1", contextMatch: [{ path: "$.requestId", op: "eq", value: requestId }] })).length > 0) return;
  })();
  const call = client.call("timer", { ms: 60_000 }, { requestId, signal: giveUp.signal, cancelOnAbort: true });
  call.catch(() => {});
  await begun;
  giveUp.abort(new Error("enough"));
  await assert.rejects(call, /enough/);
  for (;;) {
    const [answer] = await client.listBreadcrumbs({ tag: `request:${requestId}`, schemaName: "tool.response.v1", includeContext: true });
    if (answer === undefined) continue;
    assert.equal((answer.context as { error_code?: string }).error_code, "Cancelled");
    break;
  }
});

test("events arrive once and in order across a crash and a restart", async () => {
  const data = await mkdtemp(join(tmpdir(), "rcrt-ts-"));
  const server = await OwnServer.start(data);
  try {
    const client = new Rcrt({ url: server.url, token: server.token });
    const tag = word();
    let lost = 0;
    const seen: string[] = [];
    const ids: bigint[] = [];
    let heard = () => {};
    const after = await client.latestEvent();
    const following = (async () => {
      for await (const event of client.events({ after, onReconnect: () => lost++ })) {
        if (event.type === "missed") throw new Error("no event must be missed");
        if (!event.tags.includes(tag)) continue;
        seen.push(String(event.context["n"]));
        ids.push(BigInt(event.id));
        heard();
        if (event.context["last"] === true) return;
      }
    })();
    const write = async (n: number, last = false) => {
      await client.createBreadcrumb({ title: `${n}`, tags: [tag], context: { n, last } });
    };
    for (let n = 0; n < 5; n++) await write(n);
    while (seen.length < 3) await new Promise<void>((resolve) => (heard = resolve));
    await server.end("SIGKILL");
    await server.again();
    for (let n = 5; n < 10; n++) await write(n);
    await server.end("SIGTERM");
    await server.again();
    for (let n = 10; n < 12; n++) await write(n, n === 11);
    await following;
    assert.deepEqual(seen, Array.from({ length: 12 }, (_, n) => String(n)));
    assert.ok(ids.every((id, at) => at === 0 || id > (ids[at - 1] ?? 0n)));
    assert.ok(lost >= 2);
  } finally {
    await server.end("SIGTERM");
    await rm(data, { recursive: true, force: true });
  }
});

test("a caller above its rate is slowed down and loses nothing", async () => {
  const data = await mkdtemp(join(tmpdir(), "rcrt-ts-"));
  const server = await OwnServer.start(data, "--rate-limit-agent", "10:5");
  try {
    const refused = new Set<string>();
    const watching: typeof fetch = async (input, init) => {
      const answer = await fetch(input, init);
      if (answer.status === 429) refused.add(answer.headers.get("retry-after") ?? "nothing said");
      return answer;
    };
    const client = new Rcrt({ url: server.url, token: server.token, fetch: watching });
    const tag = word();
    const written = Array.from({ length: 12 }, (_, n) => client.createBreadcrumb({ title: String(n), tags: [tag] }));
    assert.equal(new Set((await Promise.all(written)).map((one) => one.id)).size, 12);
    assert.equal((await client.listBreadcrumbs({ tag })).length, 12);
    assert.ok(refused.size > 0 && !refused.has("nothing said"));
  } finally {
    await server.end("SIGTERM");
    await rm(data, { recursive: true, force: true });
  }
});

test("an expiring token is renewed, also during a stream", async () => {
  const agent = await curator().createAgent({ name: word(), roles: ["emitter", "subscriber"] });
  const client = new Rcrt({ url: url(), ownerId: agent.owner_id, agentId: agent.id, agentKey: agent.agent_key, ttlSec: 3 });
  const tag = word();
  const tokens = new Set<string>();
  const found: BreadcrumbEvent[] = [];
  let lost = 0;
  const after = await client.latestEvent();
  const writing = (async () => {
    // The stream is closed when its token expires, so later events come over another connection.
    for (let n = 0; lost < 2 || tokens.size < 2; n++) {
      tokens.add(await client.token());
      await client.createBreadcrumb({ title: String(n), tags: [tag], context: {} });
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    await client.createBreadcrumb({ title: "last", tags: [tag], context: {} });
  })();
  for await (const event of client.events({ after, onReconnect: () => lost++ })) {
    if (event.type === "missed" || !event.tags.includes(tag)) continue;
    found.push(event);
    const record = await client.getBreadcrumb(event.breadcrumb_id);
    if (record.title === "last") break;
  }
  await writing;
  assert.ok(tokens.size >= 2);
  assert.deepEqual(new Set(found.map((one) => one.breadcrumb_id)).size, found.length);
  assert.equal((await client.listBreadcrumbs({ tag })).length, found.length);
  const ended = new Rcrt({ url: url(), token: [...tokens][0] ?? "" });
  await assert.rejects(ended.listBreadcrumbs(), { code: "unauthorized", retryable: false });
  await curator().deleteAgent(agent.id);
});

test("a large result has its parts", async () => {
  const client = curator();
  const message = Array.from({ length: 5000 }, (_, n) => `line ${n}`).join("\n");
  const output = await client.call("echo", { message }, { session: word(), maxResultChars: 1000 });
  assert.ok(isLargeResult(output));
  assert.deepEqual([output.kind, output.truncated], ["json", false]);
  assert.match(output.text, /get_from_working_memory/);
  const found: string[] = [];
  for await (const part of client.parts(output)) found.push((part as { echo: string }).echo);
  assert.ok(found.length === output.parts && output.parts > 1);
  assert.equal(found.join(""), message);

  const response = await client.invoke("echo", { message }, { session: word(), maxResultChars: 1000 });
  assert.ok((largeResult(response)?.characters ?? 0) > message.length);
  // A tool can return an object that looks like an index, but not write the metadata.
  assert.equal(largeResult({ ...response, metadata: {} }), undefined);
  assert.equal(largeResult(await client.invoke("echo", { message: "short" })), undefined);

  const cut = await client.call("echo", { message }, { maxResultChars: 1000 });
  assert.ok(isLargeResult(cut) && cut.truncated && cut.parts === 0 && cut.text.length <= 1000);
  assert.deepEqual(await client.call("echo", { message }, { maxResultChars: 100_000 }), { echo: message });
});

test("a model's call gets the message of its format, also for a failure", async () => {
  const client = curator();
  const tools = { openai: await client.toolsFor("openai"), anthropic: await client.toolsFor("anthropic"), mcp: await client.toolsFor("mcp") };
  assert.equal(tools.openai.find((tool) => tool.function.name === "calculator")?.function.parameters["type"], "object");
  assert.equal(tools.anthropic.find((tool) => tool.name === "calculator")?.input_schema.type, "object");
  assert.equal(tools.mcp.tools.find((tool) => tool.name === "calculator")?.inputSchema.type, "object");
  const openai = (name: string, given: string) => ({ id: "c1", type: "function" as const, function: { name, arguments: given } });
  const good = await client.callFor("openai", openai("calculator", '{"expression": "6 * 7"}'));
  assert.deepEqual({ ...good, content: JSON.parse(good.content) }, { role: "tool", tool_call_id: "c1", content: { result: 42, expression: "6 * 7" } });
  assert.match((await client.callFor("openai", openai("calculator", "{"))).content, /^InvalidArguments: the arguments are not valid JSON/);
  assert.match((await client.callFor("openai", openai("calculator", '{"expression": 5}'))).content, /^InvalidArguments: .*expression/);
  assert.match((await client.callFor("openai", openai("calculater", "{}"))).content, /^ToolNotFound: .*calculator/);
  const flat = (await client.toolsFor("openai-responses")).find((tool) => tool.name === "calculator");
  assert.deepEqual([flat?.type, flat?.parameters["type"], flat?.strict], ["function", "object", false]);
  const answer = await client.callFor("openai-responses", { type: "function_call", call_id: "c3", name: "calculator", arguments: '{"expression": "1"}' });
  assert.deepEqual([answer.type, answer.call_id], ["function_call_output", "c3"]);
  const item = await client.callFor("openai", { type: "function_call", call_id: "c2", name: "calculator", arguments: '{"expression": "1"}' });
  assert.deepEqual([item.type, item.call_id], ["function_call_output", "c2"]);

  const anthropic = (expression: string) => ({ type: "tool_use" as const, id: "t1", name: "calculator", input: { expression } });
  assert.deepEqual((await client.callFor("anthropic", anthropic("6 * 7"))).is_error, false);
  const failed = await client.callFor("anthropic", anthropic("1/0"));
  assert.deepEqual([failed.type, failed.tool_use_id, failed.is_error], ["tool_result", "t1", true]);
  assert.match(failed.content, /^ExecutionFailed: /);

  const mcp = await client.callFor("mcp", { name: "calculator", arguments: { expression: "6 * 7" } }, { session: word() });
  assert.deepEqual([mcp.isError, mcp.structuredContent, mcp.content[0]?.type], [false, { result: 42, expression: "6 * 7" }, "text"]);
  assert.equal((await client.callFor("mcp", { name: "calculator" })).isError, true);
  await assert.rejects(client.callFor("anthropic", { ...anthropic("1"), id: "" }), { code: "invalid" });
});

test("secrets and agents", async () => {
  const client = curator();
  const secret = await client.createSecret({ name: word().toUpperCase(), value: "one-long-value", hosts: ["api.example.com"] });
  assert.equal((await client.updateSecret(secret.id, { value: "another-value" })).version, 2);
  assert.ok((await client.listSecrets()).some((one) => one.id === secret.id && !("value" in one)));
  assert.equal(await client.decryptSecret(secret.id, "a test"), "another-value");
  const calculator = await client.grantSecret(secret.id, { tool: "calculator" });
  assert.equal(calculator.tools[0]?.tool, "calculator");
  assert.deepEqual((await client.revokeSecret(secret.id, calculator.tools[0]?.tool_id ?? "")).tools, []);
  await client.deleteSecret(secret.id);
  await assert.rejects(client.deleteSecret(secret.id), { code: "not_found" });

  const agent = await client.createAgent({ name: word(), roles: ["subscriber"] });
  const reader = new Rcrt({ url: url(), ownerId: agent.owner_id, agentId: agent.id, agentKey: agent.agent_key });
  await assert.rejects(reader.createBreadcrumb({ title: "a", tags: [], context: {} }), { code: "forbidden" });
  assert.equal((await client.getAgent(agent.id)).name, agent.name);
  assert.ok((await client.listAgents()).some((one) => one.id === agent.id));
  await client.deleteAgent(agent.id);
  await assert.rejects(new Rcrt({ url: url(), ownerId: agent.owner_id, agentId: agent.id, agentKey: agent.agent_key }).listBreadcrumbs(), { code: "unauthorized" });
});

test("a caller calls the tools on its list; its tokens and changes are listed", async () => {
  const client = curator();
  const agent = await client.createAgent({ name: word(), roles: ["caller"], tools: { names: ["calculator"], sources: [], tags: [] } });
  const as = (agentKey: string): Rcrt => new Rcrt({ url: url(), ownerId: agent.owner_id, agentId: agent.id, agentKey });
  const caller = as(agent.agent_key);
  const names = (await caller.tools()).tools.map((tool) => tool.name);
  // Beside those that read the caller's own large results.
  assert.ok(names.includes("calculator") && !names.includes("echo"));
  assert.equal(((await caller.call("calculator", { expression: "6 * 7" })) as { result: number }).result, 42);
  await assert.rejects(caller.call("echo", { message: "hi" }), { code: "PermissionDenied" });
  const own = await caller.listTokens();
  assert.ok(own.tokens.length === 1 && own.tokens[0]?.current && own.tokens[0].last_used_at);
  const rotated = await client.rotateAgentKey(agent.id);
  await assert.rejects(as(agent.agent_key).tools(), { code: "unauthorized" });
  await as(rotated.agent_key).tools();
  assert.equal((await client.listTokens({ agent_id: agent.id })).tokens.length, 2);
  const log = await client.auditLog({ action: "agent", subject: agent.id });
  assert.deepEqual(log.entries.map((entry) => entry.action), ["agent.key_rotated", "agent.created"]);
  await client.deleteAgent(agent.id);
});

test("a selector filters an agent's stream", async () => {
  const client = curator();
  const agent = await client.createAgent({ name: word(), roles: ["subscriber"] });
  const reader = new Rcrt({ url: url(), ownerId: agent.owner_id, agentId: agent.id, agentKey: agent.agent_key });
  const [wanted, other] = [word(), word()];
  const first = async (options: Parameters<Rcrt["events"]>[0], like: (event: BreadcrumbEvent) => boolean = () => true): Promise<BreadcrumbEvent> => {
    for await (const event of reader.events(options)) if (event.type !== "missed" && like(event)) return event;
    throw new Error("the stream closed");
  };
  const selector = await reader.createSelector({ all_tags: [wanted] });
  assert.deepEqual((await reader.listSelectors()).map((one) => one.id), [selector.id]);
  const before = await client.createBreadcrumb({ title: "before", tags: [other] });
  const after = (await first({ after: 0, all: true }, (event) => event.breadcrumb_id === before.id)).id;
  for (const tag of [other, wanted]) await client.createBreadcrumb({ title: tag, tags: [tag] });
  assert.deepEqual((await first({ after })).tags, [wanted]);
  assert.deepEqual((await first({ after, all: true, filters: { any_tags: [other] } })).tags, [other]);
  await reader.updateSelector(selector.id, { all_tags: [other] });
  await reader.deleteSelector(selector.id);
  assert.deepEqual(await reader.listSelectors(), []);
  await client.deleteAgent(agent.id);
});

test("a grant opens a private record, and its revocation closes it", async () => {
  const client = curator();
  const agent = await client.createAgent({ name: word(), roles: ["subscriber"] });
  const reader = new Rcrt({ url: url(), ownerId: agent.owner_id, agentId: agent.id, agentKey: agent.agent_key });
  const { id } = await client.createBreadcrumb({ title: "mine", visibility: "private" });
  const grant = { breadcrumb_id: id, grantee_agent_id: agent.id, actions: ["read_context" as const] };
  await assert.rejects(reader.getBreadcrumb(id), { code: "not_found" });
  const made = await client.grantAccess(grant);
  assert.equal((await reader.getBreadcrumb(id)).title, "mine");
  assert.deepEqual((await client.listGrants({ breadcrumbId: id })).map((one) => one.id), [made]);
  assert.equal(await client.revokeAccess(grant), 1);
  await assert.rejects(reader.getBreadcrumb(id), { code: "not_found" });
  assert.ok((await client.runHygiene()).triggered && (await client.hygieneStats()).hygiene_enabled);
  await client.deleteAgent(agent.id);
});

test("the server's health", async () => {
  assert.equal((await curator().health()).status, "ok");
});
