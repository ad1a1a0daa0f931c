// What an editor must accept and refuse beside new tools. build/test-sdk checks it with TypeScript,
// which fails if a line after @ts-expect-error has no error.

export async function execute(
  input: tools.MyTransform.Input,
  context: tools.MyHttpApi.Context,
): Promise<tools.MyTransform.Output> {
  const key: string = context.secrets.API_KEY;
  // @ts-expect-error: not among the tool's required_secrets
  context.secrets.OTHER;
  // @ts-expect-error: not in the schema
  input.txt;
  // @ts-expect-error: not in the sandbox
  window.alert(key);
  // @ts-expect-error: not in the sandbox
  process.exit();
  const url = new URL("https://api.example.com/");
  const answer = await fetch(url, { headers: { authorization: key }, signal: AbortSignal.timeout(1000) });
  for await (const chunk of answer.body ?? []) {
    console.log(new TextDecoder().decode(chunk), crypto.randomUUID(), performance.now());
  }
  const found = await context.api.searchBreadcrumbs({ schema_name: "note.v1", limit: 1 });
  context.progress(0.5, found[0]?.title);
  const { words } = await context.api.callTool("my-transform", { text: input.text });
  const total: number = words;
  // @ts-expect-error: not in the schema
  await context.api.callTool("my-transform", { txt: "" });
  const unknown = await context.api.callTool("of-another-server", { any: total }, { timeout_ms: 1000 });
  console.log(unknown.anything);
  const named: tools.Input<"my-transform"> = { text: input.text };
  // @ts-expect-error: there is no such tool
  type None = tools.Output<"none">;
  return { words: named.text.length, slug: "" };
}
