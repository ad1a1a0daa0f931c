// A short test of the package for every platform: a record, a stale change, a tool, a model's call,
// an abort, a server that is not there, the event stream. `anywhere.mjs PATH-OF-INDEX.JS` in Node
// and Deno; a browser imports `walk`.
export async function walk({ Rcrt, ProblemError, ToolError, Unreachable }, url, token) {
  const client = new Rcrt({ url, token });
  const tag = `t${crypto.randomUUID()}`;
  const after = await client.latestEvent();
  const { id } = await client.createBreadcrumb({ title: "first", tags: [tag], context: { n: 1 } });
  await client.updateBreadcrumb(id, 1, { context: { n: 2 } });
  const refused = await client.updateBreadcrumb(id, 1, { context: { n: 3 } }).catch((error) => error);
  expect(refused instanceof ProblemError && refused.code === "version_conflict", "a stale change is refused");
  const output = await client.call("calculator", { expression: "6 * 7" });
  expect(output.result === 42, "a tool answers");
  const failure = await client.call("calculator", { expression: "1/0" }).catch((error) => error);
  expect(failure instanceof ToolError && failure.code === "ExecutionFailed", "a tool's failure is reported");
  const asked = { id: "call-1", type: "function", function: { name: "calculator", arguments: '{"expression": "6 * 7"}' } };
  const message = await client.callFor("openai", asked);
  expect(message.role === "tool" && message.tool_call_id === "call-1" && message.content.includes("42"), "a model gets its message");
  // Each platform has its own error for these, which the client must not show.
  const stop = new AbortController();
  const stopped = client.call("timer", { seconds: 30 }, { signal: stop.signal }).catch((error) => error);
  stop.abort(new Error("enough"));
  expect((await stopped).message === "enough", "an abort throws its own reason");
  const nobody = await new Rcrt({ url: "http://127.0.0.1:1", token }).latestEvent().catch((error) => error);
  expect(nobody instanceof Unreachable && nobody.cause !== undefined, "a server that is not there is named");
  await client.deleteBreadcrumb(id, 2);
  const seen = [];
  for await (const event of client.events({ after })) {
    if (event.breadcrumb_id === id) seen.push(event.type);
    if (event.type === "breadcrumb.deleted" && event.breadcrumb_id === id) break;
  }
  expect(seen.join(" ") === "breadcrumb.created breadcrumb.updated breadcrumb.deleted", `three events, in order: ${seen}`);
  return "walked";
}

function expect(holds, what) {
  if (!holds) throw new Error(`failed: ${what}`);
}

if (globalThis.process?.argv?.[2] !== undefined) {
  const { pathToFileURL } = await import("node:url");
  const module = await import(pathToFileURL(process.argv[2]).href);
  console.log(await walk(module, process.env.RCRT_TEST_URL, process.env.RCRT_TEST_TOKEN));
}
