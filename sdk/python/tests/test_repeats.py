"""What is sent again, and what is not."""

from __future__ import annotations

import asyncio
import time

import pytest
from rcrt import AgentKey, ProblemError, Rcrt, RcrtError, Unreachable
from rcrt.types import NewBreadcrumb
from world import CUT, Answer, Scripted, problem, scripted

RECORD: NewBreadcrumb = {"title": "a", "context": {}, "tags": []}
CREATED = Answer(201, {"id": "x", "version": 1, "replayed": True})


def client(server: Scripted) -> Rcrt:
    return Rcrt(f"{server.url}/behind/", token="t")


async def test_a_create_whose_answer_is_lost_is_sent_again_under_the_same_key() -> None:
    async with scripted(CUT, problem(503, "unavailable"), CREATED) as server, client(server) as rcrt:
        assert await rcrt.create_breadcrumb(RECORD) == {"id": "x", "version": 1, "replayed": False}
        assert len(server.requests) == 3
        assert len({request.headers["idempotency-key"] for request in server.requests}) == 1
        assert {request.line for request in server.requests} == {"POST /behind/breadcrumbs HTTP/1.1"}


async def test_a_key_of_the_callers_own_is_taken_and_a_replay_is_told() -> None:
    async with scripted(CREATED) as server, client(server) as rcrt:
        assert (await rcrt.create_breadcrumb(RECORD, idempotency_key="mine"))["replayed"] is True
        assert server.requests[0].headers["idempotency-key"] == "mine"


async def test_a_change_whose_answer_is_lost_is_not_sent_again() -> None:
    async with scripted(CUT, Answer()) as server, client(server) as rcrt:
        with pytest.raises(Unreachable) as told:
            await rcrt.update_breadcrumb("x", 3, {"title": "b"})
        assert told.value.retryable and len(server.requests) == 1
        assert server.requests[0].headers["if-match"] == '"3"'


async def test_what_was_refused_for_its_rate_is_sent_again_when_the_server_said_so() -> None:
    async with scripted(problem(429, "rate_limited", retry_after="1"), Answer(body={"version": 4})) as server:
        async with client(server) as rcrt:
            begun = time.monotonic()
            assert (await rcrt.update_breadcrumb("x", 3, {"title": "b"}))["version"] == 4
            assert time.monotonic() - begun >= 0.99


async def test_a_server_that_asks_for_too_much_patience_is_told_of() -> None:
    async with scripted(problem(429, "rate_limited", retry_after="3600")) as server, client(server) as rcrt:
        with pytest.raises(ProblemError) as told:
            await rcrt.list_breadcrumbs()
        assert (told.value.retry_after, told.value.retryable, len(server.requests)) == (3600.0, True, 1)


async def test_a_refusal_is_told_at_once() -> None:
    refusal = problem(400, "invalid", x_request_id="r1")
    assert isinstance(refusal.body, dict)
    refusal.body["violations"] = [{"field": "title", "message": "is required"}]
    async with scripted(refusal) as server, client(server) as rcrt:
        with pytest.raises(ProblemError) as told:
            await rcrt.create_breadcrumb(RECORD)
        error = told.value
        assert (error.code, error.status, error.retryable, error.request_id) == ("invalid", 400, False, "r1")
        assert error.violations == [{"field": "title", "message": "is required"}]
        assert len(server.requests) == 1


async def test_an_answer_that_is_no_problem_document_is_no_riddle() -> None:
    async with scripted(Answer(418, "<html>teapot")) as server, client(server) as rcrt:
        with pytest.raises(ProblemError, match="is the address right") as told:
            await rcrt.list_breadcrumbs()
        assert told.value.code == "foreign"
    async with scripted(Answer(200, "<html>")) as server, client(server) as rcrt:
        with pytest.raises(RcrtError, match="makes no sense"):
            await rcrt.list_breadcrumbs()


async def test_a_deletion_that_finds_nothing_after_a_lost_answer_was_done() -> None:
    async with scripted(CUT, problem(404, "not_found")) as server, client(server) as rcrt:
        await rcrt.delete_breadcrumb("x")
    async with scripted(problem(404, "not_found")) as server, client(server) as rcrt:
        with pytest.raises(ProblemError):
            await rcrt.delete_breadcrumb("x")


async def test_no_server_is_told_as_such() -> None:
    async with scripted() as server:
        url = server.url
    with pytest.raises(Unreachable):
        async with Rcrt(url, token="t") as rcrt:
            await rcrt.update_breadcrumb("x", 1, {"title": "b"})


async def test_cancelling_ends_the_waiting_between_two_sendings() -> None:
    async with scripted(problem(503, "unavailable", retry_after="50")) as server, client(server) as rcrt:
        asking = asyncio.create_task(rcrt.list_breadcrumbs())
        await server.asked.wait()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert len(server.requests) == 1


async def test_a_step_of_a_path_cannot_be_emptied_or_left() -> None:
    async with scripted() as server, client(server) as rcrt:
        for id in ("", ".", ".."):
            with pytest.raises(ValueError):
                await rcrt.get_breadcrumb(id)
        assert server.requests == []


async def test_a_token_is_fetched_once_for_many_and_renewed_when_the_server_refuses_it() -> None:
    def given(token: str) -> Answer:
        return Answer(200, {"token": token, "expires_in": 3600})

    refused = problem(401, "unauthorized")
    answers = [given("one"), Answer(200, []), refused, given("two"), Answer(200, []), refused, given("three"), refused]
    async with scripted(*answers) as server, Rcrt(server.url, AgentKey("o", "a", "k")) as rcrt:
        await rcrt.list_breadcrumbs()
        assert server.requests[0].body == '{"owner_id": "o", "agent_id": "a", "agent_key": "k"}'
        await rcrt.list_breadcrumbs()
        # The second refusal in a row is told.
        with pytest.raises(ProblemError):
            await rcrt.list_breadcrumbs()
        seen = [request.headers.get("authorization", "").removeprefix("Bearer ") for request in server.requests]
        assert seen == ["", "one", "one", "", "two", "two", "", "three"]
