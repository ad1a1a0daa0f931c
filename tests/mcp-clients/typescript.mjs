// Lists the tools and calls one, with a TypeScript SDK: node typescript.mjs PACKAGE http URL TOKEN,
// or PACKAGE stdio COMMAND ARGUMENT… Prints what build/try-mcp-clients compares.
const [sdk, kind, ...target] = process.argv.slice(2);
const isFirst = sdk === "@modelcontextprotocol/sdk";
const { Client } = await import(isFirst ? `${sdk}/client/index.js` : sdk);
const { StreamableHTTPClientTransport } = await import(isFirst ? `${sdk}/client/streamableHttp.js` : sdk);
const { StdioClientTransport } = await import(isFirst ? `${sdk}/client/stdio.js` : `${sdk}/stdio`);

const headers = { Authorization: `Bearer ${target[1]}` };
const transport =
  kind === "http"
    ? new StreamableHTTPClientTransport(new URL(target[0]), { requestInit: { headers } })
    : new StdioClientTransport({ command: target[0], args: target.slice(1) });
const client = new Client({ name: "try", version: "1" }, isFirst ? {} : { versionNegotiation: { mode: "auto" } });
await client.connect(transport);
const { tools } = await client.listTools();
const called = await client.callTool({ name: "calculator", arguments: { expression: "6 * 7" } });
const unknown = await client.callTool({ name: "no_such_tool", arguments: {} }).catch((error) => error);
const { prompts } = await client.listPrompts();
await client.close();
console.log(
  JSON.stringify({
    tools: tools.map((tool) => tool.name),
    result: called.structuredContent?.result,
    unknown: unknown.code,
    prompts: prompts.length,
  }),
);
