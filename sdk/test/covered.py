"""Lists the operations of sdk/openapi.json that a client lacks: `covered.py`."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

SDK = Path(__file__).resolve().parents[1]
# Pages for people, and alternatives to other operations.
LEFT_OUT = {
    "GET /",
    "GET /assets/{name}",
    "GET /docs",
    "GET /docs/",
    "GET /docs/page.css",
    "GET /docs/page.js",
    "GET /favicon.svg",
    "GET /health/live",
    "GET /metrics",
    "GET /openapi.json",
    "GET /swagger",
    "POST /admin/purge",
    # For links to the dashboard.
    "POST /auth/sign-in",
    "POST /auth/ticket",
    # For clients of the Model Context Protocol.
    "DELETE /mcp",
    "GET /mcp",
    "POST /mcp",
    # For clients of A2A, which have SDKs of their own.
    "GET /.well-known/agent-card.json",
    "GET /.well-known/agent-card.json/",
    "POST /a2a",
    "GET /a2a/extendedAgentCard",
    "POST /a2a/message:send",
    "POST /a2a/message:stream",
    "GET /a2a/tasks",
    "GET /a2a/tasks/{id}",
    "POST /a2a/tasks/{id}",
    "POST /a2a/tasks/{id}/pushNotificationConfigs",
    "GET /a2a/tasks/{id}/pushNotificationConfigs",
    "GET /a2a/tasks/{id}/pushNotificationConfigs/{config}",
    "DELETE /a2a/tasks/{id}/pushNotificationConfigs/{config}",
    "POST /a2a/push/{tenant}/{task}",
    # For runners.
    "POST /audit/egress",
    "POST /tenants/{id}",
}


def called(folder: Path) -> set[str]:
    """Every METHOD PATH that the sources name."""
    text = "\n".join(file.read_text(encoding="utf-8") for file in folder.iterdir() if file.suffix in (".ts", ".py") and file.stem not in ("api", "types"))
    found = {f"{method.upper()} {path}" for method, path in re.findall(r"""["'](get|post|put|patch|delete|GET|POST|PUT|PATCH|DELETE)["'],\s*["'](/[^"']*)["']""", text)}
    found |= {f"DELETE {path}" for path in re.findall(r"""remove\(\s*["'](/[^"']*)["']""", text)}
    found |= {f"GET {path}" for path in re.findall(r"""_read\(\s*["'](/[^"']*)["']""", text)}
    found |= {f"GET {path}" for path in re.findall(r"""[.]url\(\s*["'](/[^"']*)["']""", text)}
    # A path in a variable, beside the method.
    found |= {f"{method} {path}" for path, method in re.findall(r"""path = ["'](/[^"']*)["'].*?["'](PUT|POST)["'], path""", text, re.DOTALL)}
    return found


wanted = {
    f"{method.upper()} {path}"
    for path, item in json.loads((SDK / "openapi.json").read_text(encoding="utf-8"))["paths"].items()
    for method in item
} - LEFT_OUT
lacking = [
    f"{name} has nothing for {operation}"
    for name, folder in (("TypeScript", SDK / "typescript" / "src"), ("Python", SDK / "python" / "src" / "rcrt"))
    for operation in sorted(wanted - called(folder))
]
sys.exit("\n".join(lacking) or None)
