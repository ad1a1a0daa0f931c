"""Large results, part by part."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import Any, TypeGuard

from ._invoke import InvokeOptions, invoke
from ._transport import Transport
from .errors import RcrtError, ToolError, invalid_argument
from .types import LargeResult, ToolResponse

#: The most characters that a call can return at once, so that each part is returned whole.
MOST_CHARS = 4_000_000
READER = "get_from_working_memory"


def is_large_result(output: object) -> TypeGuard[LargeResult]:
    """Whether an output has the form of the index of a result that was too large to return at once.
    :func:`large_result` also checks the response."""
    if not isinstance(output, dict) or output.get("type") != "large_result":
        return False
    return isinstance(output.get("text"), str) and isinstance(output.get("parts"), int)


def large_result(response: ToolResponse) -> LargeResult | None:
    """The index in a response of :meth:`rcrt.Rcrt.invoke` whose result was too large. The
    response's metadata says so, which a tool cannot write, while its output can look like an
    index."""
    output = response.get("output")
    metadata = response.get("metadata")
    if isinstance(metadata, dict) and metadata.get("large_result") and is_large_result(output):
        return output
    return None


async def parts(transport: Transport, large: LargeResult, options: InvokeOptions) -> AsyncGenerator[Any, None]:
    if not is_large_result(large):
        raise invalid_argument("this is not a large result; is_large_result says what is one", large)
    prefix = large.get("part_prefix")
    if large.get("truncated") or not isinstance(prefix, str):
        message = "the rest of this result is lost; call the tool with a session, or with a larger max_result_chars"
        raise RcrtError(message, "no_parts", False, large)
    for number in range(1, large["parts"] + 1):
        asking = replace(options, max_result_chars=MOST_CHARS)
        response = await invoke(transport, READER, {"key": f"{prefix}{number}"}, asking)
        if response["status"] != "success":
            raise ToolError(response)
        yield response.get("output")
