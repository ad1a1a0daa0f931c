"""Every failure is a RcrtError with a cause, whatever is wrong."""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest
from rcrt import AgentKey, Open, Rcrt, RcrtError, is_large_result, models
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


CALL: models.OpenAiCall = {"id": "c", "function": {"name": "calculator", "arguments": "{}"}}
LARGE: LargeResult = {
    "type": "large_result", "text": "a", "kind": "text", "characters": 9, "truncated": False, "parts": 1, "part_prefix": "p"
}  # fmt: skip
LEASE: Any = {"request": "r", "fence": 1}
ANY: Any = {}
METHODS: dict[str, Callable[[Rcrt], Awaitable[Any]]] = {
    "agent_selectors": lambda rcrt: rcrt.agent_selectors("a"),
    "audit_log": lambda rcrt: rcrt.audit_log(),
    "call": lambda rcrt: rcrt.call("calculator"),
    "call_for": lambda rcrt: rcrt.call_for("openai", CALL),
    "call_stats": lambda rcrt: rcrt.call_stats(),
    "calls": lambda rcrt: rcrt.calls(),
    "cancel_call": lambda rcrt: rcrt.cancel_call("r"),
    "change_breadcrumb": lambda rcrt: rcrt.change_breadcrumb("b", lambda _: None),
    "claim_calls": lambda rcrt: rcrt.claim_calls(ANY),
    "complete_call": lambda rcrt: rcrt.complete_call(LEASE, ANY),
    "create_agent": lambda rcrt: rcrt.create_agent(ANY),
    "create_breadcrumb": lambda rcrt: rcrt.create_breadcrumb({"title": "a"}),
    "create_secret": lambda rcrt: rcrt.create_secret(ANY),
    "create_selector": lambda rcrt: rcrt.create_selector({}),
    "create_tool": lambda rcrt: rcrt.create_tool({}),
    "create_webhook": lambda rcrt: rcrt.create_webhook("a", ANY),
    "decrypt_secret": lambda rcrt: rcrt.decrypt_secret("s", "why"),
    "delete_agent": lambda rcrt: rcrt.delete_agent("a"),
    "delete_breadcrumb": lambda rcrt: rcrt.delete_breadcrumb("b"),
    "delete_dead_letter": lambda rcrt: rcrt.delete_dead_letter("d"),
    "delete_dead_letters": lambda rcrt: rcrt.delete_dead_letters(),
    "delete_secret": lambda rcrt: rcrt.delete_secret("s"),
    "delete_selector": lambda rcrt: rcrt.delete_selector("s"),
    "delete_tenant": lambda rcrt: rcrt.delete_tenant("t"),
    "delete_webhook": lambda rcrt: rcrt.delete_webhook("a", "w"),
    "drain_runner": lambda rcrt: rcrt.drain_runner("r", True),
    "each_breadcrumb": lambda rcrt: anext(rcrt.each_breadcrumb()),
    "egress_log": lambda rcrt: rcrt.egress_log(),
    "events": lambda rcrt: anext(rcrt.events()),
    "find_tools": lambda rcrt: rcrt.find_tools("send a message"),
    "get_agent": lambda rcrt: rcrt.get_agent("a"),
    "get_breadcrumb": lambda rcrt: rcrt.get_breadcrumb("b"),
    "get_call": lambda rcrt: rcrt.get_call("r"),
    "get_full_breadcrumb": lambda rcrt: rcrt.get_full_breadcrumb("b"),
    "get_history": lambda rcrt: rcrt.get_history("b"),
    "get_tenant": lambda rcrt: rcrt.get_tenant("t"),
    "grant_access": lambda rcrt: rcrt.grant_access(ANY),
    "grant_secret": lambda rcrt: rcrt.grant_secret("s", ANY),
    "health": lambda rcrt: rcrt.health(),
    "heartbeat": lambda rcrt: rcrt.heartbeat([], 1000),
    "hygiene_stats": lambda rcrt: rcrt.hygiene_stats(),
    "invoke": lambda rcrt: rcrt.invoke("calculator"),
    "latest_event": lambda rcrt: rcrt.latest_event(),
    "list_agents": lambda rcrt: rcrt.list_agents(),
    "list_breadcrumbs": lambda rcrt: rcrt.list_breadcrumbs(),
    "list_dead_letters": lambda rcrt: rcrt.list_dead_letters(),
    "list_grants": lambda rcrt: rcrt.list_grants(),
    "list_secrets": lambda rcrt: rcrt.list_secrets(),
    "list_selectors": lambda rcrt: rcrt.list_selectors(),
    "list_tenants": lambda rcrt: rcrt.list_tenants(),
    "list_tokens": lambda rcrt: rcrt.list_tokens(),
    "list_webhooks": lambda rcrt: rcrt.list_webhooks("a"),
    "parts": lambda rcrt: anext(rcrt.parts(LARGE)),
    "pause_webhook": lambda rcrt: rcrt.pause_webhook("a", "w"),
    "publish_tool": lambda rcrt: rcrt.publish_tool("t"),
    "put_agent": lambda rcrt: rcrt.put_agent("a", ANY),
    "put_tenant": lambda rcrt: rcrt.put_tenant("t", "name"),
    "release_call": lambda rcrt: rcrt.release_call(LEASE, "unstarted"),
    "report_runner": lambda rcrt: rcrt.report_runner(ANY),
    "resume_webhook": lambda rcrt: rcrt.resume_webhook("a", "w"),
    "retry_dead_letter": lambda rcrt: rcrt.retry_dead_letter("d"),
    "revoke_access": lambda rcrt: rcrt.revoke_access(ANY),
    "revoke_secret": lambda rcrt: rcrt.revoke_secret("s", "t"),
    "revoke_tokens": lambda rcrt: rcrt.revoke_tokens(),
    "rotate_agent_key": lambda rcrt: rcrt.rotate_agent_key("a"),
    "run_hygiene": lambda rcrt: rcrt.run_hygiene(),
    "runners": lambda rcrt: rcrt.runners(),
    "search_breadcrumbs": lambda rcrt: rcrt.search_breadcrumbs("a"),
    "set_webhook_secret": lambda rcrt: rcrt.set_webhook_secret("a", "s"),
    "start_call": lambda rcrt: rcrt.start_call(LEASE, 1),
    "stream_ticket": lambda rcrt: rcrt.stream_ticket(),
    "test_tool": lambda rcrt: rcrt.test_tool({}),
    "tool": lambda rcrt: rcrt.tool("calculator"),
    "tool_types": lambda rcrt: rcrt.tool_types(),
    "tools": lambda rcrt: rcrt.tools(),
    "tools_for": lambda rcrt: rcrt.tools_for("mcp"),
    "update_breadcrumb": lambda rcrt: rcrt.update_breadcrumb("b", 1, {}),
    "update_secret": lambda rcrt: rcrt.update_secret("s", {}),
    "update_selector": lambda rcrt: rcrt.update_selector("s", {}),
    "validate_tool": lambda rcrt: rcrt.validate_tool({}),
}


def test_the_methods_here_are_all_that_ask_the_server() -> None:
    assert set(METHODS) == {name for name in vars(Rcrt) if not name.startswith("_")} - {"close", "token"}


@pytest.mark.parametrize("name", METHODS)
async def test_the_answer_of_a_different_server_is_recognized(name: str) -> None:
    bodies = ["<html>Welcome to nginx!</html>", {"message": "ok"}, None, "", [7], "[" * 100_000, b"\xff\xfe\x00"]
    async with scripted(*(Answer(200, body) for body in bodies)) as server, Rcrt(server.url, token="t") as rcrt:
        for _ in bodies:
            await failure(lambda: METHODS[name](rcrt), "foreign", r"is not from an RCRT server.*is the address right\?")
        assert len(server.requests) == len(bodies)


@pytest.mark.parametrize("name", METHODS)
async def test_a_redirect_is_not_followed_and_names_the_other_address(name: str) -> None:
    to = Answer(301, "moved", {"location": "https://rcrt.example.com/"})
    async with scripted(to) as server, Rcrt(server.url, token="t") as rcrt:
        await failure(lambda: METHODS[name](rcrt), "foreign", r"redirects to https://rcrt\.example\.com/, .* own URL")


async def test_a_token_that_is_no_token_is_recognized() -> None:
    given = {"token": 5, "expires_in": 3600, "exp": 0, "id": "i", "owner_id": "o", "agent_id": "a", "profile": "main", "roles": []}
    for body in ({"access_token": "x"}, given, {**given, "token": "t", "expires_in": None}, {**given, "token": "a\nb"}):
        async with scripted(Answer(200, body)) as server, Rcrt(server.url, Open()) as rcrt:
            with pytest.raises(RcrtError, match="token|cannot be sent"):
                await rcrt.tools()


async def test_a_broken_answer_is_unreachable() -> None:
    cut = Answer(200, "{}", {"content-length": "1000"})
    packed = Answer(200, "not gzip", {"content-encoding": "gzip"})
    async with scripted(cut, packed) as server, Rcrt(server.url, token="t") as rcrt:
        for _ in range(2):
            error = await failure(lambda: rcrt.update_breadcrumb("b", 1, {}), "unreachable", "no answer from http")
            assert isinstance(error.__cause__, Exception)


async def test_an_answer_that_does_not_end_is_unreachable_after_the_time_limit() -> None:
    async with scripted(Answer(200, "[", open=True)) as server, Rcrt(server.url, token="t", timeout=0.2) as rcrt:
        error = await failure(lambda: rcrt.update_breadcrumb("b", 1, {}), "unreachable", "no response in 0.2 s")
        assert error.retryable


async def test_a_refusal_with_strange_headers_is_a_problem() -> None:
    for pause in ("Mon, 01 Jan 0001 00:00:00 -0000", " , ", "9" * 400, "soon"):
        async with scripted(Answer(400, "[" * 100_000, {"retry-after": pause})) as server, Rcrt(server.url, token="t") as rcrt:
            await failure(rcrt.list_secrets, "foreign", "is 400, and not from an RCRT server")


async def test_the_time_limit_of_a_request_is_not_that_of_the_callers_http_client() -> None:
    limits: list[Any] = []

    def answer(request: httpx.Request) -> httpx.Response:
        limits.append(request.extensions["timeout"]["read"])
        raise httpx.ReadTimeout("too slow", request=request)

    async with httpx.AsyncClient(transport=httpx.MockTransport(answer), timeout=0.1) as http:
        async with Rcrt("http://127.0.0.1:1", token="t", timeout=7, http=http) as rcrt:
            error = await failure(lambda: rcrt.update_breadcrumb("b", 1, {}), "unreachable", "too slow")
            assert isinstance(error.__cause__, httpx.ReadTimeout)
            # A call can be answered after its whole wait.
            await failure(lambda: rcrt.call("timer", wait=60), "unreachable", "too slow")
    assert limits[:2] == [7, pytest.approx(67, abs=1.5)]

    def broken(_: httpx.Request) -> httpx.Response:
        raise KeyError("the caller's own HTTP client")

    async with httpx.AsyncClient(transport=httpx.MockTransport(broken)) as http, Rcrt("http://a", token="t", http=http) as rcrt:
        await failure(rcrt.list_secrets, "invalid_argument", "cannot be sent: .*own HTTP client")
        await failure(lambda: anext(rcrt.events()), "invalid_argument", "cannot be sent: .*own HTTP client")


async def test_invalid_arguments_are_refused_before_anything_is_sent() -> None:
    round: dict[str, Any] = {}
    round["itself"] = round
    async with scripted() as server, Rcrt(server.url, token="t") as rcrt:
        for name in ("", "  ", None):
            await failure(lambda: rcrt.call(name), "invalid_argument", "the tool's name must not be empty")  # type: ignore[arg-type]  # noqa: B023
        await failure(lambda: rcrt.tool(".."), "invalid_argument", "name must not be empty")
        for bad in (round, {"a": object()}, float("nan")):
            await failure(lambda: rcrt.call("calculator", bad), "invalid_argument", "the body is not JSON")  # noqa: B023
        for wait in (-1, float("nan"), None, "5"):
            await failure(lambda: rcrt.call("calculator", wait=wait), "invalid_argument", "wait must be seconds")  # type: ignore[arg-type]  # noqa: B023
        await failure(lambda: rcrt.call("calculator", traceparent="a\nb"), "invalid_argument", "cannot be sent")
        await failure(lambda: rcrt.get_breadcrumb("\ud800"), "invalid_argument", "id is not text that can be in a URL")
        await failure(lambda: rcrt.get_breadcrumb(5), "invalid_argument", "id must not be empty")  # type: ignore[arg-type]
        await failure(lambda: rcrt.list_breadcrumbs(tag=5), "invalid_argument", "tags must be a list")  # type: ignore[arg-type]
        await failure(lambda: rcrt.list_breadcrumbs(tag="\ud800"), "invalid_argument", "cannot be sent")
        await failure(lambda: rcrt.list_breadcrumbs(context_match=[{"path": "$.a", "op": "eq", "value": object()}]), "invalid_argument", "context_match is not JSON")
        await failure(lambda: rcrt.search_breadcrumbs(qvec=5), "invalid_argument", "qvec must be a list")  # type: ignore[arg-type]
        for limit in (0, 1001):
            await failure(lambda: anext(rcrt.each_breadcrumb(limit=limit)), "invalid_argument", "limit must be")  # noqa: B023
        await failure(lambda: rcrt.events(filters=object()), "invalid_argument", "filters is not JSON")  # type: ignore[arg-type]
        for after in ("soon", -1, 1.5):
            await failure(lambda: anext(rcrt.events(after=after)), "invalid_argument", "after must be the number")  # type: ignore[arg-type]  # noqa: B023
        for silence in (0, None, float("nan")):
            await failure(lambda: anext(rcrt.events(silence=silence)), "invalid_argument", "silence must be seconds")  # type: ignore[arg-type]  # noqa: B023
        says = "has no name: give one of a message's tool_calls.*it is a dictionary with id"
        await failure(lambda: rcrt.call_for("openai", {"id": "c"}), "invalid_argument", says)  # type: ignore[call-overload]
        says = "has no name: give the params of tools/call.*it is NoneType"
        await failure(lambda: rcrt.call_for("mcp", None), "invalid_argument", says)  # type: ignore[call-overload]
        says = "format must be openai, openai-responses, anthropic, mcp; it is 'openAI'"
        await failure(lambda: rcrt.call_for("openAI", CALL), "invalid_argument", says)  # type: ignore[call-overload]
        async with Rcrt(server.url, token="a\nb") as other:
            await failure(other.tools, "invalid_argument", "cannot be sent")
        assert server.requests == []
    here = "http://127.0.0.1:1"
    await failure(lambda: Rcrt(here), "invalid_argument", "either credentials or a token")
    await failure(lambda: Rcrt(here, "a token"), "invalid_argument", "for a token there is token=")  # type: ignore[arg-type]
    await failure(lambda: Rcrt(here, token=" "), "invalid_argument", "the token is empty")
    await failure(lambda: Rcrt(here, token=5), "invalid_argument", "the token is empty")  # type: ignore[arg-type]
    await failure(lambda: Rcrt(here, token="t", timeout=0), "invalid_argument", "timeout must be seconds")
    await rcrt.close()
    await failure(rcrt.tools, "invalid_argument", "client has been closed")


async def test_a_name_that_no_tool_can_have_is_a_message_for_the_model() -> None:
    async with scripted() as server, Rcrt(server.url, token="t") as rcrt:
        for name in ("", " ", ".", "..", "x" * 500, "\ud800", "a\0b"):
            message = await rcrt.call_for("openai", {"id": "c1", "function": {"name": name, "arguments": "{}"}})
            assert (message["role"], message["tool_call_id"]) == ("tool", "c1")
            assert message["content"].startswith('ToolNotFound: there is no tool named "')
        item = await rcrt.call_for("openai-responses", {"call_id": "c2", "name": "..", "arguments": "{}"})
        assert (item["type"], item["call_id"]) == ("function_call_output", "c2")
        item = await rcrt.call_for("openai", {"call_id": "c3", "name": "..", "arguments": "{}"})
        assert item["call_id"] == "c3"
        block = await rcrt.call_for("anthropic", {"type": "tool_use", "id": "t1", "name": "..", "input": {}})
        assert (block["tool_use_id"], block["is_error"]) == ("t1", True)
        result = await rcrt.call_for("mcp", {"name": ".."})
        assert (result["isError"], result["content"][0]["text"]) == (True, 'ToolNotFound: there is no tool named ".."')
        assert server.requests == []


async def test_a_cut_result_has_no_parts() -> None:
    cut: LargeResult = {"type": "large_result", "text": "a", "kind": "text", "characters": 9, "truncated": True, "parts": 0}
    assert is_large_result(cut) and not any(is_large_result(one) for one in ({"type": "large_result"}, None, "a"))
    async with Rcrt("http://127.0.0.1:1", token="t") as rcrt:
        await failure(lambda: anext(rcrt.parts(cut)), "no_parts", "call the tool with a session")
        for other in ({"result": 42}, "a", None):
            await failure(lambda: anext(rcrt.parts(other)), "invalid_argument", "this is not a large result")  # type: ignore[arg-type]  # noqa: B023
