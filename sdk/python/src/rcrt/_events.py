"""A subscription across connections: each event once, in order, also across restarts of the
server."""

from __future__ import annotations

import asyncio
import codecs
import json
import math
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Union, cast

import httpx

from ._sse import Message, Parser
from ._transport import (
    CONNECT_TIME,
    LONGEST_WAIT,
    QueryValue,
    Transport,
    authorized,
    backoff,
    checked_retry,
    not_sent,
    unanswered,
)
from .errors import ProblemError, RcrtError, Unreachable, foreign, invalid_argument, problem_of

#: After a connection of at least this many seconds the next one is made at once.
GOOD_TIME = 5.0
#: How many seconds to look for a server that has never answered.
QUICK_TIME = 3.0
#: How often in a row the same event can be unreadable before the stream gives up.
UNREADABLE = 5


Kind = Literal["breadcrumb.created", "breadcrumb.updated", "breadcrumb.deleted"]


@dataclass(frozen=True)
class Event:
    """One change of one record. (The OpenAPI document does not describe the messages of a
    stream.)"""

    #: The event's number. Pass it as ``after`` to resume after this event.
    id: int
    type: Kind
    breadcrumb_id: str
    version: int
    tags: list[str]
    schema_name: str | None
    #: The record's context after the change (before a deletion). Empty if the record is secret.
    context: dict[str, Any]
    #: The whole message.
    raw: dict[str, Any]


@dataclass(frozen=True)
class Missed:
    """The subscriber was away for longer than events are retained: those between ``after`` and
    ``first`` were deleted."""

    #: Pass this as the position from which a stream continues.
    id: int
    #: The number after which events are missing.
    after: int
    #: The number of the oldest event that still exists.
    first: int


EventItem = Union[Event, Missed]


async def follow(
    transport: Transport,
    after: int | None,
    query: Mapping[str, QueryValue],
    silence: float,
    on_reconnect: Callable[[Exception], None] | None,
    retry_time: float | None,
) -> AsyncGenerator[EventItem, None]:
    """Follows events until the loop is left or the server refuses permanently."""
    # The newest number seen. Always set after a connection was made: the first ping has the
    # stream's start.
    last = _number(after)
    if not isinstance(silence, (int, float)) or not silence > 0:
        raise invalid_argument(f"silence must be seconds, more than 0; it is {silence!r}")
    if retry_time is not None:
        retry_time = checked_retry(retry_time)
    connected = False
    failures = unreadable = 0
    # Since when no connection has worked.
    lost = time.monotonic()
    while True:
        began = time.monotonic()
        heard = False
        why: Exception
        messages = _connection(transport, query, last, silence)
        try:
            async for message in messages:
                connected = heard = True
                item = _read(message)
                if item is None:
                    # Everything up to a ping's number has been seen.
                    if message.id.isdigit():
                        last = max(last or 0, int(message.id))
                    continue
                failures = unreadable = 0
                if last is not None and item.id <= last and isinstance(item, Event):
                    continue
                last = item.id
                yield item
            why = Unreachable("the server ended the event stream")
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            unreadable += 1
            if unreadable >= UNREADABLE:
                raise RcrtError(f"the event after {last or 0} cannot be read: {error}", "foreign", False, error) from error
            why = error
        except RcrtError as error:
            passing = isinstance(error, ProblemError) and error.status >= 500
            if not error.retryable and not passing:
                raise
            why = error
        finally:
            await messages.aclose()
        if heard:
            lost = time.monotonic()
            if lost - began > GOOD_TIME:
                failures = 0
        failures += 1
        limit = retry_time if retry_time is not None else math.inf if connected else transport.retry_time
        gone = time.monotonic() - lost
        # An attempt can be long by itself: it can include those for a token.
        if transport.gives_up(failures, gone, limit) or (not transport.worked and gone > QUICK_TIME):
            raise why
        if on_reconnect is not None:
            on_reconnect(why)
        asked = why.retry_after or 0.0 if isinstance(why, ProblemError) else 0.0
        await asyncio.sleep(max(backoff(failures), min(asked, LONGEST_WAIT)))


def _number(after: object) -> int | None:
    if isinstance(after, int) and after >= 0:
        return after
    if isinstance(after, str) and after.isascii() and after.isdigit():
        return int(after)
    if after is not None:
        raise invalid_argument(f"after must be the number of an event, 0 or more; it is {after!r}")
    return None


def _read(message: Message) -> EventItem | None:
    """The message as an item; ``None`` for a ping and for kinds that this client does not know."""
    raw = json.loads(message.data)
    kind = raw["type"] if isinstance(raw, dict) else None
    if not isinstance(kind, str):
        raise ValueError("an event without a type")
    if kind == "missed":
        return Missed(id=int(message.id), after=int(raw["after"]), first=int(raw["first"]))
    if not kind.startswith("breadcrumb."):
        return None
    return Event(
        id=int(message.id),
        type=cast(Kind, kind),
        breadcrumb_id=raw["breadcrumb_id"],
        version=raw["version"],
        tags=raw["tags"],
        schema_name=raw.get("schema_name"),
        context=raw["context"],
        raw=raw,
    )


async def _connection(
    transport: Transport, query: Mapping[str, QueryValue], last: int | None, silence: float
) -> AsyncGenerator[Message, None]:
    """The messages of one connection."""
    answer = await _open(transport, query, last, silence)
    try:
        parser = Parser()
        text = codecs.getincrementaldecoder("utf-8")("replace")
        parts: AsyncIterator[bytes] = answer.aiter_bytes()
        while True:
            try:
                part = await anext(parts)
            except StopAsyncIteration:
                return
            for message in parser.read(text.decode(part)):
                yield message
    except httpx.ReadTimeout as error:
        raise Unreachable(f"nothing came for {silence} s, not even a ping", error) from error
    except (httpx.HTTPError, httpx.StreamError, OSError, RuntimeError) as error:
        raise Unreachable(f"the event stream broke: {str(error) or type(error).__name__}", error) from error
    finally:
        await answer.aclose()


async def _open(transport: Transport, query: Mapping[str, QueryValue], last: int | None, silence: float) -> httpx.Response:
    headers = {"accept": "text/event-stream", "last-event-id": None if last is None else str(last)}
    request = transport._request("GET", "/events/stream", {}, query, headers, None)
    timeout = httpx.Timeout(silence, connect=min(CONNECT_TIME, silence))
    renewed = False
    while True:
        try:
            token = await transport.tokens.token()
            sending = transport.http.build_request(**authorized(request, token), timeout=timeout)
            answer = await transport.http.send(sending, stream=True, follow_redirects=False)
            if answer.is_success:
                kind = answer.headers.get("content-type", "none")
                if kind.startswith("text/event-stream"):
                    transport.worked = True
                    return answer
                await answer.aclose()
                raise foreign(transport.base, f"its type is {kind}, not an event stream")
            await answer.aread()
        except RcrtError:
            raise
        except (httpx.TransportError, httpx.DecodingError) as error:
            if isinstance(error, (httpx.LocalProtocolError, httpx.UnsupportedProtocol)):
                raise not_sent(error) from error
            raise unanswered(transport.base, error, silence) from error
        except Exception as error:
            raise not_sent(error) from error
        if answer.status_code == 401 and not renewed and transport.tokens.refused(token):
            renewed = True
            continue
        raise problem_of(transport.base, answer)
