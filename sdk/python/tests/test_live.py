"""The client against the running server."""

from __future__ import annotations

import asyncio
import json
import signal
from contextlib import aclosing
from pathlib import Path

import httpx
import pytest
from rcrt import AgentKey, Event, ProblemError, Rcrt, StillRunning, ToolError, is_large_result, large_result, models
from rcrt.types import AclChange, AllowedTools, Breadcrumb, BreadcrumbChanges, ContextMatch, NewBreadcrumb
from world import OwnServer, curator, url, word


async def test_a_record_is_created_changed_and_deleted() -> None:
    tag = word()
    record: NewBreadcrumb = {"title": "first", "tags": [tag], "schema_name": "note.v1", "context": {"text": f"whales {tag}"}}
    async with curator() as rcrt:
        created = await rcrt.create_breadcrumb(record)
        assert (created["version"], created.get("replayed")) == (1, False)
        id = created["id"]
        short = await rcrt.get_breadcrumb(id)
        assert short["title"] == "first" and "owner_id" not in short
        assert (await rcrt.get_full_breadcrumb(id))["owner_id"]

        assert (await rcrt.update_breadcrumb(id, 1, {"title": "second"}))["version"] == 2
        with pytest.raises(ProblemError) as raised:
            await rcrt.update_breadcrumb(id, 1, {"title": "stale"})
        problem = raised.value.problem
        assert (raised.value.code, problem.get("expected"), problem.get("actual")) == ("version_conflict", 1, 2)
        assert [one["version"] for one in await rcrt.get_history(id)] == [2, 1]
        assert [one["title"] for one in await rcrt.list_breadcrumbs(tag=tag, schema_name="note.v1")] == ["second"]
        listed = await rcrt.list_breadcrumbs(any_tag=[word(), tag], include_context=True)
        assert listed[0].get("context") == {"text": f"whales {tag}"}
        assert id in [one["id"] for one in await rcrt.search_breadcrumbs(tag, tag=tag)]
        with pytest.raises(ProblemError):
            await rcrt.delete_breadcrumb(id, 1)
        await rcrt.delete_breadcrumb(id, 2)
        with pytest.raises(ProblemError) as gone:
            await rcrt.get_breadcrumb(id)
        assert (gone.value.code, gone.value.status) == ("not_found", 404)


async def test_concurrent_changes_are_all_applied() -> None:
    def more(record: Breadcrumb) -> BreadcrumbChanges:
        return {"context": {"count": record["context"]["count"] + 1}}

    async with curator() as rcrt:
        id = (await rcrt.create_breadcrumb({"title": "a counter", "context": {"count": 0}}))["id"]
        await asyncio.gather(*(rcrt.change_breadcrumb(id, more, attempts=50) for _ in range(8)))
        record = await rcrt.get_full_breadcrumb(id)
        assert (record["context"], record["version"]) == ({"count": 8}, 9)


async def test_paging_returns_each_record_once() -> None:
    tag = word()
    async with curator() as rcrt:
        for n in range(7):
            await rcrt.create_breadcrumb({"title": str(n), "tags": [tag]})
        titles = [one["title"] async for one in rcrt.each_breadcrumb(tag=tag, limit=3)]
        assert sorted(titles) == ["0", "1", "2", "3", "4", "5", "6"]


async def test_a_tool_is_called_and_its_failures_are_reported() -> None:
    async with curator() as rcrt:
        assert await rcrt.call("calculator", {"expression": "6 * 7"}) == {"result": 42, "expression": "6 * 7"}
        with pytest.raises(ToolError) as raised:
            await rcrt.call("calculator", {"expression": "1/0"})
        assert raised.value.code == "ExecutionFailed"
        assert (await rcrt.invoke("calculator", {"expression": 5})).get("error_code") == "InvalidArguments"
        assert "calculator" in [tool["name"] for tool in (await rcrt.tools())["tools"]]
        assert isinstance(await rcrt.tools_for("openai"), list)
        some = [tool["name"] for tool in await rcrt.tools_for("anthropic", tool=["calculator", "echo"])]
        assert "calculator" in some and "echo" in some and "random" not in some
        found = await rcrt.find_tools("evaluate an arithmetic expression", limit=3)
        assert found["tools"][0]["name"] == "calculator" and 0 < found["tools"][0]["score"] <= 1
        assert found["hints"][0]["type"] == "family"
        with pytest.raises(ProblemError) as unknown:
            await rcrt.tool("calculater")
        assert "calculator" in unknown.value.problem.get("nearest", [])


async def test_a_call_names_the_version_that_must_run() -> None:
    input = {"expression": "6 * 7"}
    async with curator() as rcrt:
        metadata = (await rcrt.invoke("calculator", input))["metadata"]
        version, hash = metadata["tool_version"], metadata["definition_hash"]
        by_number = await rcrt.invoke("calculator", input, version=version)
        assert (by_number["status"], by_number["metadata"]["tool_version"]) == ("success", version)
        by_hash = await rcrt.invoke("calculator", input, definition_hash=hash)
        assert (by_hash["status"], by_hash["metadata"]["definition_hash"]) == ("success", hash)
        assert (await rcrt.invoke("calculator", input, version=9999)).get("error_code") == "ToolNotFound"
        other = await rcrt.invoke("calculator", input, definition_hash="sha256:" + "0" * 64)
        assert other.get("error_code") == "ToolNotFound"


async def test_live_runners_are_listed() -> None:
    async with curator() as rcrt:
        [runner] = await rcrt.runners()
        assert runner["draining"] is False and runner["slots"]["worker"]["free"] > 0
        response = await rcrt.invoke("calculator", {"expression": "1"})
        assert response["metadata"]["runner_id"] == runner["runner_id"]


async def test_a_call_continues_after_the_caller_stops_waiting() -> None:
    request_id = word()
    async with curator() as rcrt:
        with pytest.raises(StillRunning) as raised:
            await rcrt.invoke("timer", {"ms": 2500}, wait=1, request_id=request_id)
        key = raised.value.idempotency_key
        answer = await rcrt.invoke("timer", {"ms": 2500}, idempotency_key=key, request_id=request_id)
        assert (answer["status"], answer["request_id"]) == ("success", request_id)
        answers = await rcrt.list_breadcrumbs(tag=f"request:{request_id}", schema_name="tool.response.v1")
        assert len(answers) == 1


async def test_an_abandoned_call_is_cancelled_on_request() -> None:
    request_id = word()
    of_it: list[ContextMatch] = [{"path": "$.requestId", "op": "eq", "value": request_id}]
    async with curator() as rcrt:
        calling = asyncio.create_task(rcrt.call("timer", {"ms": 60_000}, request_id=request_id, cancel=True))
        while not await rcrt.list_breadcrumbs(schema_name="tool.request.v1", context_match=of_it):
            await asyncio.sleep(0)
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
        while True:
            wanted = rcrt.each_breadcrumb(tag=f"request:{request_id}", schema_name="tool.response.v1", include_context=True)
            async for answer in wanted:
                assert answer.get("context", {})["error_code"] == "Cancelled"
                return


async def test_events_arrive_across_a_crash_and_a_restart(tmp_path: Path) -> None:
    server = OwnServer(tmp_path / "data")
    await server.start()
    try:
        async with Rcrt(server.url, token=server.token) as rcrt:
            tag = word()
            lost: list[Exception] = []
            seen: list[int] = []
            ids: list[int] = []
            heard = asyncio.Event()
            after = await rcrt.latest_event()

            async def following() -> None:
                async with aclosing(rcrt.events(after=after, on_reconnect=lost.append)) as events:
                    async for event in events:
                        assert isinstance(event, Event), "no event must be missed"
                        if tag not in event.tags:
                            continue
                        seen.append(event.context["n"])
                        ids.append(event.id)
                        if len(seen) >= 3:
                            heard.set()
                        if event.context["n"] == 11:
                            return

            async def write(first: int, end: int) -> None:
                for n in range(first, end):
                    await rcrt.create_breadcrumb({"title": str(n), "tags": [tag], "context": {"n": n}})

            task = asyncio.create_task(following())
            await write(0, 5)
            await heard.wait()
            await server.end(signal.SIGKILL)
            await server.start()
            await write(5, 10)
            await server.end(signal.SIGTERM)
            await server.start()
            await write(10, 12)
            await task
            assert seen == list(range(12))
            assert ids == sorted(set(ids)) and len(lost) >= 2
    finally:
        await server.end(signal.SIGTERM)


async def test_a_caller_above_its_rate_is_slowed_down_and_loses_nothing(tmp_path: Path) -> None:
    server = OwnServer(tmp_path / "data", "--rate-limit-agent", "10:5")
    await server.start()
    try:
        refused: list[str | None] = []

        async def watch(answer: httpx.Response) -> None:
            if answer.status_code == 429:
                refused.append(answer.headers.get("retry-after"))

        async with httpx.AsyncClient(event_hooks={"response": [watch]}, trust_env=False) as http:
            rcrt = Rcrt(server.url, token=server.token, http=http)
            tag = word()
            record: NewBreadcrumb = {"title": "one of many", "tags": [tag]}
            written = await asyncio.gather(*(rcrt.create_breadcrumb(record) for _ in range(12)))
            assert len({one["id"] for one in written}) == 12
            assert len(await rcrt.list_breadcrumbs(tag=tag)) == 12
        assert refused and None not in refused
    finally:
        await server.end(signal.SIGTERM)


async def test_an_expiring_token_is_renewed_also_during_a_stream() -> None:
    async with curator() as rcrt:
        agent = await rcrt.create_agent({"name": word(), "roles": ["emitter", "subscriber"]})
        key = AgentKey(agent["owner_id"], agent["id"], agent["agent_key"], ttl_sec=3)
        tag = word()
        tokens: list[str] = []
        lost: list[Exception] = []
        found: list[str] = []
        async with Rcrt(url(), key) as short_lived:
            after = await short_lived.latest_event()

            async def writing() -> None:
                # The stream is closed when its token expires, so later events come over another
                # connection.
                while len(lost) < 2 or len(set(tokens)) < 2:
                    tokens.append(await short_lived.token())
                    await short_lived.create_breadcrumb({"title": "one", "tags": [tag]})
                    await asyncio.sleep(0.1)
                await short_lived.create_breadcrumb({"title": "last", "tags": [tag], "context": {"last": True}})

            task = asyncio.create_task(writing())
            async with aclosing(short_lived.events(after=after, on_reconnect=lost.append)) as events:
                async for event in events:
                    if isinstance(event, Event) and tag in event.tags:
                        found.append(event.breadcrumb_id)
                        if event.context.get("last"):
                            break
            await task
        assert len(set(tokens)) >= 2
        assert len(set(found)) == len(found) == len(await rcrt.list_breadcrumbs(tag=tag))
        with pytest.raises(ProblemError) as ended:
            async with Rcrt(url(), token=tokens[0]) as old:
                await old.list_breadcrumbs()
        assert ended.value.code == "unauthorized"
        await rcrt.delete_agent(agent["id"])


async def test_a_large_result_has_its_parts() -> None:
    message = "\n".join(f"line {n}" for n in range(5000))
    async with curator() as rcrt:
        output = await rcrt.call("echo", {"message": message}, session=word(), max_result_chars=1000)
        assert is_large_result(output) and (output["kind"], output["truncated"]) == ("json", False)
        assert "get_from_working_memory" in output["text"]
        found = [part["echo"] async for part in rcrt.parts(output)]
        assert len(found) == output["parts"] > 1 and "".join(found) == message

        response = await rcrt.invoke("echo", {"message": message}, session=word(), max_result_chars=1000)
        index = large_result(response)
        assert index is not None and index["characters"] > len(message)
        # A tool can return an object that looks like an index, but not write the metadata.
        assert large_result({**response, "metadata": {}}) is None
        assert large_result(await rcrt.invoke("echo", {"message": "short"})) is None

        cut = await rcrt.call("echo", {"message": message}, max_result_chars=1000)
        assert is_large_result(cut) and cut["truncated"] and cut["parts"] == 0 and len(cut["text"]) <= 1000
        assert await rcrt.call("echo", {"message": message}, max_result_chars=100_000) == {"echo": message}


async def test_a_models_call_gets_the_message_of_its_format_also_for_a_failure() -> None:
    def openai(name: str, given: str) -> models.OpenAiCall:
        return {"id": "c1", "type": "function", "function": {"name": name, "arguments": given}}

    def anthropic(expression: str) -> models.AnthropicCall:
        return {"type": "tool_use", "id": "t1", "name": "calculator", "input": {"expression": expression}}

    async with curator() as rcrt:
        good = await rcrt.call_for("openai", openai("calculator", '{"expression": "6 * 7"}'))
        assert (good["role"], good["tool_call_id"]) == ("tool", "c1")
        assert json.loads(good["content"]) == {"result": 42, "expression": "6 * 7"}
        for name, given, says in (
            ("calculator", "{", "InvalidArguments: the arguments are not valid JSON"),
            ("calculator", '{"expression": 5}', "InvalidArguments: "),
            ("calculater", "{}", "ToolNotFound: "),
        ):
            assert (await rcrt.call_for("openai", openai(name, given)))["content"].startswith(says)
        call: models.OpenAiItemCall = {"call_id": "c2", "name": "calculator", "arguments": '{"expression": "1"}'}
        flat = {tool["name"]: tool for tool in await rcrt.tools_for("openai-responses")}["calculator"]
        assert (flat["type"], flat["parameters"]["type"], flat["strict"]) == ("function", "object", False)
        answer = await rcrt.call_for("openai-responses", call)
        assert (answer["type"], answer["call_id"]) == ("function_call_output", "c2")
        item = await rcrt.call_for("openai", call)
        assert (item["type"], item["call_id"]) == ("function_call_output", "c2")

        assert (await rcrt.call_for("anthropic", anthropic("6 * 7")))["is_error"] is False
        failed = await rcrt.call_for("anthropic", anthropic("1/0"))
        assert (failed["type"], failed["tool_use_id"], failed["is_error"]) == ("tool_result", "t1", True)
        assert failed["content"].startswith("ExecutionFailed: ")

        mcp = await rcrt.call_for("mcp", {"name": "calculator", "arguments": {"expression": "6 * 7"}}, session=word())
        assert (mcp["isError"], mcp.get("structuredContent")) == (False, {"result": 42, "expression": "6 * 7"})
        assert (await rcrt.call_for("mcp", {"name": "calculator"}))["isError"] is True
        with pytest.raises(ProblemError):
            await rcrt.call_for("anthropic", {**anthropic("1"), "id": ""})


class PydanticLike:
    """A tool call as the libraries of OpenAI, Anthropic and MCP have it: not a dictionary."""

    def __init__(self, **fields: object) -> None:
        self._fields = fields

    def model_dump(self, *, mode: str = "python", by_alias: bool = False) -> dict[str, object]:
        assert mode == "json" and by_alias
        return self._fields


async def test_a_models_call_can_be_the_object_of_a_library() -> None:
    async with curator() as rcrt:
        function = {"name": "calculator", "arguments": '{"expression": "6 * 7"}'}
        message = await rcrt.call_for("openai", PydanticLike(id="c1", type=None, function=function))
        assert (message["role"], message["tool_call_id"]) == ("tool", "c1")
        item = await rcrt.call_for("openai", PydanticLike(call_id="c2", type="function_call", status="completed", **function))
        assert (item["type"], json.loads(item["output"])["result"]) == ("function_call_output", 42)
        block = await rcrt.call_for("anthropic", PydanticLike(type="tool_use", id="t1", name="calculator", input={"expression": "1/0"}))
        assert (block["tool_use_id"], block["is_error"]) == ("t1", True)
        result = await rcrt.call_for("mcp", PydanticLike(name="calculator", arguments={"expression": "1"}, _meta=None))
        assert (result["isError"], result["structuredContent"]["result"]) == (False, 1)


async def test_the_tools_are_listed_in_each_format_and_called_by_their_names_there() -> None:
    async with curator() as rcrt:
        openai = {tool["function"]["name"]: tool for tool in await rcrt.tools_for("openai")}
        assert openai["calculator"]["type"] == "function" and openai["calculator"]["function"]["parameters"]["type"] == "object"
        anthropic = {tool["name"]: tool for tool in await rcrt.tools_for("anthropic")}
        assert anthropic["calculator"]["input_schema"]["type"] == "object"
        mcp = {tool["name"]: tool for tool in (await rcrt.tools_for("mcp"))["tools"]}
        assert mcp["calculator"]["inputSchema"]["type"] == "object" and "annotations" in mcp["calculator"]


async def test_secrets_and_agents() -> None:
    async with curator() as rcrt:
        made = await rcrt.create_secret({"name": word().upper(), "value": "one-long-value", "hosts": ["api.example.com"]})
        id = made["id"]
        assert (await rcrt.update_secret(id, {"value": "another-value"}))["version"] == 2
        assert id in [one["id"] for one in await rcrt.list_secrets()]
        assert await rcrt.decrypt_secret(id, "a test") == "another-value"
        granted = await rcrt.grant_secret(id, {"tool": "calculator"})
        assert granted["tools"][0]["tool"] == "calculator"
        assert (await rcrt.revoke_secret(id, granted["tools"][0]["tool_id"]))["tools"] == []
        await rcrt.delete_secret(id)

        agent = await rcrt.create_agent({"name": word(), "roles": ["subscriber"]})
        key = AgentKey(agent["owner_id"], agent["id"], agent["agent_key"])
        async with Rcrt(url(), key) as reader:
            with pytest.raises(ProblemError) as raised:
                await reader.create_breadcrumb({"title": "a"})
            assert raised.value.code == "forbidden"
        assert (await rcrt.get_agent(agent["id"]))["name"] == agent["name"]
        assert agent["id"] in [one["id"] for one in await rcrt.list_agents()]
        await rcrt.delete_agent(agent["id"])


async def test_a_caller_calls_the_tools_on_its_list_and_its_tokens_and_changes_are_listed() -> None:
    async with curator() as rcrt:
        allowed: AllowedTools = {"names": ["calculator"], "sources": [], "tags": []}
        agent = await rcrt.create_agent({"name": word(), "roles": ["caller"], "tools": allowed})
        async with Rcrt(url(), AgentKey(agent["owner_id"], agent["id"], agent["agent_key"])) as caller:
            names = {tool["name"] for tool in (await caller.tools())["tools"]}
            # Beside those that read the caller's own large results.
            assert "calculator" in names and "echo" not in names
            assert (await caller.call("calculator", {"expression": "6 * 7"}))["result"] == 42
            with pytest.raises(ToolError) as raised:
                await caller.call("echo", {"message": "hi"})
            assert raised.value.code == "PermissionDenied"
            own = (await caller.list_tokens())["tokens"]
            assert len(own) == 1 and own[0]["current"] and own[0].get("last_used_at")
        rotated = await rcrt.rotate_agent_key(agent["id"])
        async with Rcrt(url(), AgentKey(agent["owner_id"], agent["id"], agent["agent_key"])) as old:
            with pytest.raises(ProblemError) as refused:
                await old.tools()
            assert refused.value.code == "unauthorized"
        async with Rcrt(url(), AgentKey(agent["owner_id"], agent["id"], rotated["agent_key"])) as new:
            await new.tools()
        assert len((await rcrt.list_tokens(agent_id=agent["id"]))["tokens"]) == 2
        log = await rcrt.audit_log(action="agent", subject=agent["id"])
        assert [entry["action"] for entry in log["entries"]] == ["agent.key_rotated", "agent.created"]
        await rcrt.delete_agent(agent["id"])


async def test_a_selector_filters_an_agents_stream() -> None:
    async with curator() as rcrt:
        agent = await rcrt.create_agent({"name": word(), "roles": ["subscriber"]})
        wanted, other = word(), word()
        async with Rcrt(url(), AgentKey(agent["owner_id"], agent["id"], agent["agent_key"])) as reader:
            selector = (await reader.create_selector({"all_tags": [wanted]}))["id"]
            assert [one["id"] for one in await reader.list_selectors()] == [selector]
            first = await rcrt.create_breadcrumb({"title": "before", "tags": [other]})
            after = await number_of(rcrt, first["id"])
            for tag in (other, wanted):
                await rcrt.create_breadcrumb({"title": tag, "tags": [tag]})
            async with aclosing(reader.events(after=after)) as events:
                async for event in events:
                    assert isinstance(event, Event) and event.tags == [wanted]
                    break
            async with aclosing(reader.events(after=after, all=True, filters={"any_tags": [other]})) as events:
                async for event in events:
                    assert isinstance(event, Event) and event.tags == [other]
                    break
            await reader.update_selector(selector, {"all_tags": [other]})
            await reader.delete_selector(selector)
            assert await reader.list_selectors() == []
        await rcrt.delete_agent(agent["id"])


async def number_of(rcrt: Rcrt, id: str) -> int:
    """The number of the record's first event."""
    async with aclosing(rcrt.events(after=0, all=True)) as events:
        async for event in events:
            if isinstance(event, Event) and event.breadcrumb_id == id:
                return event.id
    raise AssertionError("the stream closed")


async def test_a_grant_opens_a_private_record_and_its_revocation_closes_it() -> None:
    async with curator() as rcrt:
        agent = await rcrt.create_agent({"name": word(), "roles": ["subscriber"]})
        id = (await rcrt.create_breadcrumb({"title": "mine", "visibility": "private"}))["id"]
        grant: AclChange = {"breadcrumb_id": id, "grantee_agent_id": agent["id"], "actions": ["read_context"]}
        async with Rcrt(url(), AgentKey(agent["owner_id"], agent["id"], agent["agent_key"])) as reader:
            with pytest.raises(ProblemError):
                await reader.get_breadcrumb(id)
            made = await rcrt.grant_access(grant)
            assert (await reader.get_breadcrumb(id))["title"] == "mine"
            assert [one["id"] for one in await rcrt.list_grants(breadcrumb_id=id)] == [made]
            assert await rcrt.revoke_access(grant) == 1
            with pytest.raises(ProblemError):
                await reader.get_breadcrumb(id)
        assert (await rcrt.run_hygiene())["triggered"] and (await rcrt.hygiene_stats())["hygiene_enabled"]
        await rcrt.delete_agent(agent["id"])


async def test_the_servers_health() -> None:
    async with curator() as rcrt:
        assert (await rcrt.health())["status"] == "ok"
