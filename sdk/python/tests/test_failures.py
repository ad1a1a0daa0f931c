"""Every failure is a RcrtError with a cause, whatever is wrong."""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from rcrt import AgentKey, Open, Rcrt, RcrtError, is_large_result
from rcrt.types import LargeResult
from world import Answer, scripted


async def failure(act: Callable[[], Any], code: str, message: str) -> RcrtError:
    """The failure, which must say what is wrong and where it came from."""
    with pytest.raises(RcrtError) as raised:
        done = act()
        if inspect.isawaitable(done):
            await done
    error = raised.value
    assert error.code == code, error
    assert re.search(message, str(error)), error
    assert error.cause is not None
    return error


async def test_a_url_without_a_scheme_is_refused_with_an_example() -> None:
    for url in ("127.0.0.1:8081", "localhost:8081", "rcrt.example.com", "", "ftp://127.0.0.1", "http://", "http://a:b"):
        await failure(lambda: Rcrt(url, token="t"), "invalid_url", "is not a server URL; write it with its scheme, such as http:")  # noqa: B023


async def test_a_server_that_does_not_run_is_unreachable() -> None:
    async with scripted() as server:
        url = server.url
    async with Rcrt(url, token="t") as rcrt:
        error = await failure(lambda: rcrt.call("calculator"), "unreachable", "no answer from http:.*; is the server running")
        assert error.retryable and isinstance(error.__cause__, Exception)
        await failure(lambda: anext(rcrt.events()), "unreachable", "no answer")
    async with Rcrt(url, AgentKey("o", "a", "k")) as rcrt:
        await failure(rcrt.tools, "unreachable", "no answer")


async def test_the_answer_of_a_different_server_is_recognized() -> None:
    acts: list[Callable[[Rcrt], Awaitable[Any]]] = [
        lambda rcrt: rcrt.call("calculator"),
        lambda rcrt: rcrt.call_for("openai", {"id": "c", "function": {"name": "calculator", "arguments": "{}"}}),
        lambda rcrt: rcrt.tools(),
        lambda rcrt: rcrt.tool("calculator"),
        lambda rcrt: rcrt.list_breadcrumbs(),
        lambda rcrt: rcrt.create_breadcrumb({"title": "a"}),
        lambda rcrt: rcrt.health(),
        lambda rcrt: anext(rcrt.events()),
    ]
    for act in acts:
        for body in ("<html>Welcome to nginx!</html>", {"message": "ok"}, None, ""):
            async with scripted(Answer(200, body)) as server, Rcrt(server.url, token="t") as rcrt:
                await failure(lambda: act(rcrt), "foreign", r"is not from an RCRT server.*is the address right\?")  # noqa: B023
    async with scripted(Answer(200, {"access_token": "x"})) as server, Rcrt(server.url, Open()) as rcrt:
        await failure(rcrt.tools, "foreign", "lacks .*token")


async def test_invalid_arguments_are_refused_before_anything_is_sent() -> None:
    round: dict[str, Any] = {}
    round["itself"] = round
    async with scripted() as server, Rcrt(server.url, token="t") as rcrt:
        for name in ("", "  ", None):
            await failure(lambda: rcrt.call(name), "invalid_argument", "the tool's name must not be empty")  # type: ignore[arg-type]  # noqa: B023
        await failure(lambda: rcrt.tool(".."), "invalid_argument", "name must not be empty")
        for bad in (round, {"a": object()}, float("nan")):
            await failure(lambda: rcrt.call("calculator", bad), "invalid_argument", "the body is not JSON")  # noqa: B023
        await failure(lambda: rcrt.call("calculator", traceparent="a\nb"), "invalid_argument", "cannot be sent")
        await failure(lambda: rcrt.call_for("openai", {"id": "c"}), "invalid_argument", "has no name")  # type: ignore[call-overload]
        await failure(lambda: rcrt.call_for("mcp", None), "invalid_argument", "has no name")  # type: ignore[call-overload]
        async with Rcrt(server.url, token="a\nb") as other:
            await failure(other.tools, "invalid_argument", "cannot be sent")
        assert server.requests == []
    await failure(lambda: Rcrt("http://127.0.0.1:1"), "invalid_argument", "either credentials or a token")
    await rcrt.close()
    await failure(rcrt.tools, "invalid_argument", "client has been closed")


async def test_a_cut_result_has_no_parts() -> None:
    cut: LargeResult = {"type": "large_result", "text": "a", "kind": "text", "characters": 9, "truncated": True, "parts": 0}
    assert is_large_result(cut) and not any(is_large_result(one) for one in ({"type": "large_result"}, None, "a"))
    async with Rcrt("http://127.0.0.1:1", token="t") as rcrt:
        await failure(lambda: anext(rcrt.parts(cut)), "no_parts", "call the tool with a session")
