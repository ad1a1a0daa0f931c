"""The event stream, over connections that a test breaks."""

from __future__ import annotations

import json
from contextlib import aclosing
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from rcrt import EventItem, Missed, ProblemError, Rcrt, RcrtError
from world import CUT, Answer, Scripted, problem, scripted


def hello(id: int) -> str:
    return f'id: {id}\ndata: {{"type":"ping"}}\n\n'


def event(id: int) -> str:
    raw = {"type": "breadcrumb.created", "breadcrumb_id": f"b{id}", "version": 1, "tags": [], "context": {}}
    return f"id: {id}\ndata: {json.dumps(raw)}\n\n"


def stream(text: str, open: bool = False) -> Answer:
    return Answer(200, text, {"content-type": "text/event-stream"}, open=open)


async def take(server: Scripted, count: int, **options: Any) -> list[EventItem]:
    found: list[EventItem] = []
    async with Rcrt(server.url, token="t") as rcrt, aclosing(rcrt.events(**options)) as events:
        async for item in events:
            found.append(item)
            if len(found) == count:
                break
    return found


async def test_each_event_once_in_order_however_the_connection_breaks() -> None:
    answers = [
        stream(hello(5) + event(6) + event(7) + event(8)[:20]),
        CUT,
        problem(503, "unavailable"),
        stream(hello(7) + event(7) + event(8)),
        stream(hello(9)),
        stream(hello(9) + event(10), open=True),
    ]
    async with scripted(*answers) as server:
        lost: list[str] = []
        found = await take(
            server, 4, filters={"all_tags": ["a"]}, on_reconnect=lambda why: lost.append(type(why).__name__)
        )
        assert [one.id for one in found] == [6, 7, 8, 10]
        assert [one.headers.get("last-event-id") for one in server.requests] == [None, "7", "7", "7", "8", "9"]
        query = parse_qs(urlsplit(server.requests[0].line.split()[1]).query)
        assert query == {"filters": ['{"all_tags": ["a"]}']}
        assert lost == ["Unreachable", "Unreachable", "ProblemError", "Unreachable", "Unreachable"]


async def test_missed_events_are_reported_in_order() -> None:
    missed = 'id: 49\ndata: {"type":"missed","after":7,"first":50}\n\n'
    answers = [stream(hello(7) + missed + event(50)), stream(hello(50) + event(51), open=True)]
    async with scripted(*answers) as server:
        found = await take(server, 3, after=7)
        assert found[0] == Missed(id=49, after=7, first=50)
        assert [one.id for one in found[1:]] == [50, 51]


async def test_a_silent_connection_counts_as_lost() -> None:
    async with scripted(stream(hello(1), open=True), stream(hello(1) + event(2), open=True)) as server:
        lost: list[str] = []
        found = await take(server, 1, silence=0.2, on_reconnect=lambda why: lost.append(str(why)))
        assert [one.id for one in found] == [2]
        assert "nothing came for 0.2 s" in lost[0]


async def test_a_lost_stream_is_tried_again_for_the_time_that_is_set() -> None:
    # A stream that was not connected yet, of a client that has reached the server.
    async with scripted(Answer(200, []), *[CUT] * 6, stream(hello(1) + event(2), open=True)) as server:
        async with Rcrt(server.url, token="t") as rcrt:
            await rcrt.list_breadcrumbs()
            async with aclosing(rcrt.events()) as events:
                assert (await anext(events)).id == 2
    for answers, options, requests in (([stream(hello(1))], {"retry_time": 0}, 6), ([], {}, 6)):
        async with scripted(*answers, *[CUT] * 20) as server:
            with pytest.raises(RcrtError, match="is the server running"):
                await take(server, 1, **options)
            assert len(server.requests) == requests


async def test_a_refusal_closes_the_stream() -> None:
    async with scripted(problem(403, "forbidden")) as server:
        with pytest.raises(ProblemError):
            await take(server, 1)
        assert len(server.requests) == 1


async def test_an_unreadable_event_is_reported_in_the_end() -> None:
    broken = stream(hello(1) + "id: 2\ndata: {no json\n\n")
    async with scripted(*[broken] * 5) as server:
        with pytest.raises(RcrtError, match="the event after 1 cannot be read"):
            await take(server, 1)
