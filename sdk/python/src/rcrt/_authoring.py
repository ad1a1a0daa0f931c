"""Tools that an agent makes: their input, and tests of them."""

from __future__ import annotations

import asyncio
import time as clock
import uuid
from typing import Any, cast

from . import types
from ._transport import Transport, backoff
from .errors import StillRunning

#: A runner in the server's process answers at the end of the test, and not within the wait.
TEST_TIME = 300.0


def creation(spec: dict[str, Any], mode: str | None, if_version: int | None) -> dict[str, Any]:
    """The input of ``create_tool``."""
    fields = {"tool_spec": spec, "mode": mode, "if_version": if_version}
    return {name: value for name, value in fields.items() if value is not None}


async def test(transport: Transport, spec: dict[str, Any], wait: float) -> types.ToolResponse:
    """The response, which can be a failure. :class:`StillRunning` after ``wait`` seconds."""
    key = str(uuid.uuid4())
    ends = clock.monotonic() + wait
    headers = {"prefer": "wait=60", "idempotency-key": key}
    attempt = 1
    while True:
        answer = await transport.exchange(
            "POST", "/tools/test", headers=headers, body={"tool_spec": spec}, again=True, wait=TEST_TIME
        )
        if answer.status_code != 202:
            return cast(types.ToolResponse, transport.read("POST", "/tools/test", answer))
        accepted = cast(types.Accepted, transport.read("POST", "/tools/test", answer))
        if clock.monotonic() > ends:
            raise StillRunning("test_tool", accepted, key)
        await asyncio.sleep(backoff(attempt))
        attempt += 1
