"""A call of a tool, from the request to the response, however long it takes and however often the
connection breaks."""

from __future__ import annotations

import asyncio
import json
import math
import time as clock
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypedDict, cast

import httpx

from . import types
from ._transport import QueryValue, Transport, backoff
from .errors import StillRunning, foreign, invalid_argument
from .models import ModelFormat

#: The longest that the server waits in one round trip, in seconds.
ROUND = 60.0
PATH = "/tools/{name}/invoke"
#: What a model's call is in each format.
CALLS: dict[ModelFormat, str] = {
    "openai": "one of a message's tool_calls, {id, function: {name, arguments}}",
    "openai-responses": "a function_call item, {call_id, name, arguments}",
    "anthropic": "a tool_use block, {id, name, input}",
    "mcp": "the params of tools/call, {name, arguments}",
}
#: The longest name that a request can have, in characters.
MAX_NAME = 200


class InvokeArguments(TypedDict, total=False):
    """The keyword arguments of :meth:`rcrt.Rcrt.invoke`, which other calls of tools take too."""

    wait: float
    idempotency_key: str | None
    workspace: str | None
    session: str | None
    model: str | None
    max_result_chars: int | None
    deadline_ms: int | None
    version: int | None
    definition_hash: str | None
    request_id: str | None
    traceparent: str | None
    cancel: bool
    debug: bool


@dataclass(frozen=True)
class InvokeOptions:

    wait: float = 300.0
    idempotency_key: str | None = None
    workspace: str | None = None
    session: str | None = None
    model: str | None = None
    max_result_chars: int | None = None
    deadline_ms: int | None = None
    version: int | None = None
    definition_hash: str | None = None
    request_id: str | None = None
    traceparent: str | None = None
    cancel: bool = False
    debug: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.wait, (int, float)) or not self.wait >= 0:
            raise invalid_argument(f"wait must be seconds, 0 or more; it is {self.wait!r}")

    def fields(self) -> dict[str, str | int | bool]:
        """The fields of a call beside its input."""
        fields = {
            "workspace": self.workspace,
            "session": self.session,
            "model": self.model,
            "max_result_chars": self.max_result_chars,
            "deadline_ms": self.deadline_ms,
            "version": self.version,
            "definition_hash": self.definition_hash,
            "requestId": self.request_id,
            "debug": self.debug or None,
        }
        return {name: value for name, value in fields.items() if value is not None}


async def invoke(transport: Transport, tool: str, input: Any, options: InvokeOptions) -> types.ToolResponse:
    """The response, which can be a failure. :class:`StillRunning` when the time is over."""
    answer = await _Asked(transport, tool, {"input": input, **options.fields()}, {}, options).answer()
    return cast(types.ToolResponse, transport.read("POST", PATH, answer))


async def invoke_for(transport: Transport, format: ModelFormat, call: Any, options: InvokeOptions) -> Any:
    """Calls a tool as a model asked for it, and returns the message for the model."""
    if format not in list(CALLS):
        raise invalid_argument(f"format must be {', '.join(CALLS)}; it is {format!r}")
    given = _dictionary(call)
    function = given.get("function") if format == "openai" else None
    name = function.get("name") if isinstance(function, dict) else given.get("name")
    if not isinstance(name, str):
        what = f"a dictionary with {', '.join(list(given)[:10])}" if given else type(call).__name__
        raise invalid_argument(
            f"the tool call has no name: give {CALLS[format]}, for the format {format}; it is {what}", call
        )
    if not _can_be_name(name):
        return _without_tool(format, given, name)
    answer = await _Asked(transport, name, given, {"format": format, **options.fields()}, options).answer()
    message = transport.parse(answer)
    kind = message.get("type") or message.get("role") if isinstance(message, dict) else None
    is_result = isinstance(message, dict) and isinstance(message.get("content"), list)
    if not is_result and kind not in ("tool", "function_call_output", "tool_result"):
        raise foreign(transport.base, "it is not a message for a model", message)
    return message


def _can_be_name(name: str) -> bool:
    """Whether a request can have the name. A model can invent any."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return name.strip() not in ("", ".", "..") and len(name) <= MAX_NAME and "\0" not in name


def _without_tool(format: ModelFormat, given: dict[str, Any], name: str) -> dict[str, Any]:
    """The message about a name that no tool can have."""
    text = f"ToolNotFound: there is no tool named {json.dumps(name[:MAX_NAME])}"
    if format == "mcp":
        return {"content": [{"type": "text", "text": text}], "isError": True}
    if format == "anthropic":
        return {"type": "tool_result", "tool_use_id": given.get("id"), "content": text, "is_error": True}
    if format == "openai-responses" or "call_id" in given:
        return {"type": "function_call_output", "call_id": given.get("call_id"), "output": text}
    return {"role": "tool", "tool_call_id": given.get("id"), "content": text}


def _dictionary(call: object) -> dict[str, Any]:
    """A call as a dictionary. The libraries of OpenAI, Anthropic and MCP have Pydantic objects."""
    dump = getattr(call, "model_dump", None)
    if dump is None:
        return dict(call) if isinstance(call, Mapping) else {}
    try:
        fields = dump(mode="json", by_alias=True)
        # Such as the `type` of a library for a server that sends none.
        return {name: value for name, value in fields.items() if value is not None}
    except Exception as error:
        raise invalid_argument(f"the tool call cannot be read: {error}", error) from error


class _Asked:
    """One call, and how it is repeated until it has its response."""

    def __init__(
        self, transport: Transport, tool: str, body: Any, query: dict[str, QueryValue], options: InvokeOptions
    ) -> None:
        if not isinstance(tool, str) or not tool.strip():
            raise invalid_argument(f"the tool's name must not be empty; it is {tool!r}")
        self.transport, self.tool, self.body, self.query, self.options = transport, tool, body, query, options
        self.key = str(uuid.uuid4()) if options.idempotency_key is None else options.idempotency_key

    async def answer(self) -> httpx.Response:
        """The final answer of the server."""
        ends = clock.monotonic() + self.options.wait
        early = 1
        try:
            while True:
                begun = clock.monotonic()
                # In whole seconds. The last round can be 0, which checks once more whether the
                # response exists.
                seconds = math.floor(min(ROUND, max(0.0, ends - begun)))
                retry_time = min(self.transport.retry_time, max(0.0, ends - begun))
                answer = await self._send(f"wait={seconds}", seconds, retry_time)
                if answer.status_code != 202:
                    return answer
                accepted = cast(types.Accepted, self.transport.read("POST", PATH, answer))
                if clock.monotonic() + 1 > ends:
                    raise StillRunning(self.tool, accepted, self.key)
                # A stopping server responds early. The next server knows the request.
                if clock.monotonic() - begun < seconds / 2:
                    await asyncio.sleep(backoff(early))
                    early += 1
        except asyncio.CancelledError:
            if self.options.cancel:
                await asyncio.shield(self._cancel())
            raise

    async def _send(self, prefer: str, wait: float, retry_time: float) -> httpx.Response:
        headers = {"prefer": prefer, "idempotency-key": self.key, "traceparent": self.options.traceparent}
        at = {"name": self.tool}
        return await self.transport.exchange(
            "POST",
            "/tools/{name}/invoke",
            at=at,
            query=self.query,
            headers=headers,
            body=self.body,
            again=True,
            wait=wait,
            retry_time=retry_time,
        )

    async def _cancel(self) -> None:
        """The key identifies the request, also if its response was lost."""
        try:
            answer = await self._send("respond-async", 0, 0)
            if answer.status_code == 202:
                request = self.transport.parse(answer)["request"]
                await self.transport.json("POST", "/calls/{request_id}/cancel", at={"request_id": request}, again=True, retry_time=0)
        except Exception:  # The caller gets the cancellation, also if it did not reach the server.
            return
