"""Lists the tools and calls one, with the Python SDK: `python.py MODE http URL TOKEN`, or `MODE stdio COMMAND ARGUMENT…`.
Prints what build/try-mcp-clients compares."""

import asyncio
import json
import sys

from mcp import Client, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client


async def main(mode, kind, *target):
    if kind == "http":
        http = create_mcp_http_client(headers={"Authorization": f"Bearer {target[1]}"})
        transport = streamable_http_client(target[0], http_client=http)
    else:
        transport = stdio_client(StdioServerParameters(command=target[0], args=list(target[1:])))
    async with Client(transport, mode=mode) as client:
        tools = (await client.list_tools()).tools
        called = await client.call_tool("calculator", {"expression": "6 * 7"})
        try:
            unknown = await client.call_tool("no_such_tool", {})
        except MCPError as error:
            unknown = error.error
        prompts = (await client.list_prompts()).prompts
    print(
        json.dumps(
            {
                "tools": [tool.name for tool in tools],
                "result": (called.structured_content or {}).get("result"),
                "unknown": getattr(unknown, "code", None),
                "prompts": len(prompts),
            }
        )
    )


asyncio.run(main(*sys.argv[1:]))
