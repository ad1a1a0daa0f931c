"""Which requests are retried, and which are not."""

from __future__ import annotations

import asyncio
import time

import pytest
from rcrt import AgentKey, ProblemError, Rcrt, RcrtError, Unreachable
from rcrt.types import NewBreadcrumb
from world import CUT, Answer, Scripted, problem, scripted

RECORD: NewBreadcrumb = {"title": "a", "context": {}, "tags": []}
CHANGED = {**RECORD, "id": "x", "owner_id": "o", "version": 4, "checksum": "c", "created_at": "", "updated_at": ""}
CREATED = Answer(201, {"id": "x", "version": 1, "replayed": True})


def client(server: Scripted) -> Rcrt:
    return Rcrt(f"{server.url}/behind/", token="t")


async def test_a_create_whose_response_is_lost_is_retried_with_the_same_key() -> None:
    async with scripted(CUT, problem(503, "unavailable"), CREATED) as server, client(server) as rcrt:
        assert await rcrt.create_breadcrumb(RECORD) == {"id": "x", "version": 1, "replayed": False}
        assert len(server.requests) == 3
        assert len({request.headers["idempotency-key"] for request in server.requests}) == 1
        assert {request.line for request in server.requests} == {"POST /behind/breadcrumbs HTTP/1.1"}


async def test_the_callers_own_key_is_used_and_a_replay_is_reported() -> None:
    async with scripted(CREATED) as server, client(server) as rcrt:
        assert (await rcrt.create_breadcrumb(RECORD, idempotency_key="mine"))["replayed"] is True
        assert server.requests[0].headers["idempotency-key"] == "mine"


async def test_a_change_whose_response_is_lost_is_not_retried() -> None:
    async with scripted(CUT, Answer()) as server, client(server) as rcrt:
        with pytest.raises(Unreachable) as raised:
            await rcrt.update_breadcrumb("x", 3, {"title": "b"})
        assert raised.value.retryable and len(server.requests) == 1
        assert server.requests[0].headers["if-match"] == '"3"'


async def test_a_rate_limited_request_is_retried_after_the_servers_pause() -> None:
    async with scripted(problem(429, "rate_limited", retry_after="1"), Answer(body=CHANGED)) as server:
        async with client(server) as rcrt:
            begun = time.monotonic()
            assert (await rcrt.update_breadcrumb("x", 3, {"title": "b"}))["version"] == 4
            assert time.monotonic() - begun >= 0.99


async def test_a_pause_that_is_too_long_is_an_error() -> None:
    async with scripted(problem(429, "rate_limited", retry_after="3600")) as server, client(server) as rcrt:
        with pytest.raises(ProblemError) as raised:
            await rcrt.list_breadcrumbs()
        assert (raised.value.retry_after, raised.value.retryable, len(server.requests)) == (3600.0, True, 1)


async def test_a_refusal_is_reported_at_once() -> None:
    refusal = problem(400, "invalid", x_request_id="r1")
    assert isinstance(refusal.body, dict)
    refusal.body["violations"] = [{"field": "title", "message": "is required"}]
    async with scripted(refusal) as server, client(server) as rcrt:
        with pytest.raises(ProblemError) as raised:
            await rcrt.create_breadcrumb(RECORD)
        error = raised.value
        assert (error.code, error.status, error.retryable, error.request_id) == ("invalid", 400, False, "r1")
        assert error.violations == [{"field": "title", "message": "is required"}]
        assert len(server.requests) == 1


async def test_a_response_that_is_not_a_problem_document_has_a_clear_error() -> None:
    async with scripted(Answer(418, "<html>teapot")) as server, client(server) as rcrt:
        with pytest.raises(ProblemError, match="is the address right") as raised:
            await rcrt.list_breadcrumbs()
        assert raised.value.code == "foreign"
    async with scripted(Answer(200, "<html>")) as server, client(server) as rcrt:
        with pytest.raises(RcrtError, match="it is not JSON"):
            await rcrt.list_breadcrumbs()


async def test_a_retried_deletion_that_finds_nothing_succeeds() -> None:
    async with scripted(CUT, problem(404, "not_found")) as server, client(server) as rcrt:
        await rcrt.delete_breadcrumb("x")
    async with scripted(problem(404, "not_found")) as server, client(server) as rcrt:
        with pytest.raises(ProblemError):
            await rcrt.delete_breadcrumb("x")


async def test_an_unreachable_server_is_reported() -> None:
    async with scripted() as server:
        url = server.url
    with pytest.raises(Unreachable):
        async with Rcrt(url, token="t") as rcrt:
            await rcrt.update_breadcrumb("x", 1, {"title": "b"})


async def test_a_server_that_has_answered_is_tried_again_for_longer_than_one_that_never_did() -> None:
    found = Answer(200, [])
    async with scripted(found, *[CUT] * 6, found) as server, client(server) as rcrt:
        await rcrt.list_breadcrumbs()
        await rcrt.list_breadcrumbs()
        assert len(server.requests) == 8
    for answers, retry_time, requests in (([found], 0.0, 7), ([], float("inf"), 6)):
        async with scripted(*answers, *[CUT] * 20) as server:
            async with Rcrt(server.url, token="t", retry_time=retry_time) as rcrt:
                if answers:
                    await rcrt.list_breadcrumbs()
                with pytest.raises(Unreachable, match="is the server running"):
                    await rcrt.list_breadcrumbs()
                assert len(server.requests) == requests
    with pytest.raises(RcrtError, match="retry_time must be seconds"):
        Rcrt("http://a", token="t", retry_time=-1)


async def test_cancelling_stops_the_pause_between_two_attempts() -> None:
    async with scripted(problem(503, "unavailable", retry_after="50")) as server, client(server) as rcrt:
        asking = asyncio.create_task(rcrt.list_breadcrumbs())
        await server.asked.wait()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert len(server.requests) == 1


async def test_a_path_segment_cannot_be_empty_or_dots() -> None:
    async with scripted() as server, client(server) as rcrt:
        for id in ("", ".", ".."):
            with pytest.raises(RcrtError, match="must not be empty"):
                await rcrt.get_breadcrumb(id)
        assert server.requests == []


async def test_a_token_is_fetched_once_for_many_and_renewed_when_the_server_refuses_it() -> None:
    def given(token: str) -> Answer:
        return Answer(200, {"token": token, "expires_in": 3600, "owner_id": "o", "agent_id": "a"})

    refused = problem(401, "unauthorized")
    answers = [given("one"), Answer(200, []), refused, given("two"), Answer(200, []), refused, given("three"), refused]
    async with scripted(*answers) as server, Rcrt(server.url, AgentKey("o", "a", "k")) as rcrt:
        await rcrt.list_breadcrumbs()
        assert server.requests[0].body == '{"owner_id": "o", "agent_id": "a", "agent_key": "k"}'
        await rcrt.list_breadcrumbs()
        # The second refusal in a row is reported.
        with pytest.raises(ProblemError):
            await rcrt.list_breadcrumbs()
        seen = [request.headers.get("authorization", "").removeprefix("Bearer ") for request in server.requests]
        assert seen == ["", "one", "one", "", "two", "two", "", "three"]
