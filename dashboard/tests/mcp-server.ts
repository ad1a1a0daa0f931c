/** A server of the Model Context Protocol in a few lines, as a program that the runner starts. */
import type { Api } from "./world";

const PROGRAM = `
import json, sys
description = sys.argv[1]
name = sys.argv[2]
tool = {"name": name, "description": description, "inputSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}
for line in sys.stdin:
    ask = json.loads(line)
    if "id" not in ask:
        continue
    method = ask.get("method")
    if method == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "test-server", "version": "1.0"}, "instructions": "Give a name."}
    elif method == "tools/list":
        result = {"tools": [tool]}
    elif method == "tools/call":
        result = {"content": [{"type": "text", "text": "Hello, " + ask["params"]["arguments"].get("name", "you")}]}
    elif method == "ping":
        result = {}
    else:
        print(json.dumps({"jsonrpc": "2.0", "id": ask["id"], "error": {"code": -32601, "message": "no such method"}}), flush=True)
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": ask["id"], "result": result}), flush=True)
`;

function config(name: string, description: string, tool: string): Record<string, unknown> {
  return { name, transport: { type: "stdio", command: "python3", args: ["-c", PROGRAM, description, tool] } };
}

/** Adds the server, and returns the id of its record. */
export async function add(api: Api, name: string, description: string, tool = "greet"): Promise<string> {
  return await api.record({ title: `MCP server ${name}`, schema_name: "mcp.server.v1", tags: ["mcp:server", `mcp:${name}`, "workspace:tools"], context: config(name, description, tool) });
}

/** The server describes its tool in another way from now on. */
export async function change(api: Api, id: string, name: string, description: string, tool = "greet"): Promise<void> {
  const { version } = await api.send<{ version: number }>("GET", `/breadcrumbs/${id}/full`);
  await api.send("PATCH", `/breadcrumbs/${id}`, { context: config(name, description, tool) }, { "if-match": `"${version}"` });
}
