"""Large results, part by part."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import Any

from typing import TypeGuard

from ._invoke import InvokeOptions, invoke
from ._transport import Transport
from .errors import RcrtError, ToolError
from .types import LargeResult

#: The most characters that a call can return at once, so that each part is returned whole.
MOST_CHARS = 4_000_000
READER = "get_from_working_memory"


def is_large_result(output: object) -> TypeGuard[LargeResult]:
    """Whether an output is the index of a result that was too large to return at once."""
    return isinstance(output, dict) and output.get("type") == "large_result" and "text" in output and "parts" in output


async def parts(transport: Transport, large: LargeResult, options: InvokeOptions) -> AsyncGenerator[Any, None]:
    prefix = large.get("part_prefix")
    if large["truncated"] or not prefix:
        message = "the rest of this result is lost; call the tool with a session, or with a larger max_result_chars"
        raise RcrtError(message, "no_parts", False, large)
    for number in range(1, large["parts"] + 1):
        asking = replace(options, max_result_chars=MOST_CHARS)
        response = await invoke(transport, READER, {"key": f"{prefix}{number}"}, asking)
        if response["status"] != "success":
            raise ToolError(response)
        yield response.get("output")
