"""One request and its response, with retries that are safe."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Mapping
from typing import Any, Union, cast
from urllib.parse import quote

import httpx

from ._answers import ANSWERS
from ._credentials import Credentials, Tokens
from .errors import ProblemError, RcrtError, Unreachable, foreign, invalid_argument, problem_of
from .types import GivenToken, TokenRequest

#: The attempts of a request to a server that has never answered this client. With the pauses, that
#: is about three seconds.
ATTEMPTS = 6
#: How many seconds the client tries to reach a server again that has answered it before.
RETRY_TIME = 30.0
#: The default of the time limit for an answer, in seconds.
ANSWER_TIME = 60.0
CONNECT_TIME = 5.0
#: If the server asks for a longer pause than this, in seconds, the client raises its error instead
#: of waiting.
LONGEST_WAIT = 60.0
#: Fields that this client reads itself, so no answer can lack them.
USED = {"deleted", "expires_in", "number", "request", "rows", "status", "token", "tool", "tools", "value", "version"}

QueryValue = Union[str, int, bool, list[str], None]


def backoff(attempt: int) -> float:
    """Seconds before the next attempt (from 1): 0.1, then twice as long each time up to 5, half
    of it by chance."""
    return min(5.0, 0.1 * 2.0 ** min(attempt - 1, 10)) * (0.5 + random.random() / 2)


def etag(version: int) -> str:
    """A version in the form of ``If-Match``."""
    return f'"{version}"'


class MaybeDone:
    """Whether an earlier attempt of the same request was possibly done already."""

    def __init__(self) -> None:
        self.is_so = False


class Transport:
    def __init__(
        self,
        url: str,
        credentials: Credentials,
        timeout: float,
        http: httpx.AsyncClient | None,
        retry_time: float = RETRY_TIME,
    ) -> None:
        base = _server_url(url)
        if not isinstance(timeout, (int, float)) or not timeout > 0:
            raise invalid_argument(f"timeout must be seconds, more than 0; it is {timeout!r}")
        #: The time limit of one attempt in seconds, for an answer without an explicit wait.
        self.answer_time = float(timeout)
        self.retry_time = checked_retry(retry_time)
        #: Whether an RCRT server has answered at this address.
        self.worked = False
        self.base = f"{base.scheme}://{base.netloc.decode()}{base.raw_path.partition(b'?')[0].decode().rstrip('/')}"
        self._owns = http is None
        self.http = http or httpx.AsyncClient(trust_env=not _is_this_machine(base.host))
        self.tokens = Tokens(credentials, self._given)

    async def close(self) -> None:
        if self._owns:
            await self.http.aclose()

    async def _given(self, request: TokenRequest) -> GivenToken:
        given = await self.json("POST", "/auth/token", body=request, again=True, anonymous=True)
        if not isinstance(given["token"], str) or not isinstance(given["expires_in"], (int, float)):
            raise foreign(self.base, "it has no token", given)
        return cast(GivenToken, given)

    async def json(self, method: str, path: str, **sending: Any) -> Any:
        """The body of a successful response."""
        return self.read(method, path, await self.exchange(method, path, **sending))

    def read(self, method: str, path: str, answer: httpx.Response) -> Any:
        """The body of a successful response, if it can be from this route."""
        body = self.parse(answer)
        routes = (f"{method} {path} {status}" for status in (answer.status_code, 200, 201))
        route = next((route for route in routes if route in ANSWERS), None)
        if route is None:
            return body
        kind, fields = ANSWERS[route]
        if kind == "list" and not isinstance(body, list):
            raise foreign(self.base, "it is not a list", body)
        for one in body if kind == "list" else [body]:
            if not isinstance(one, dict):
                raise foreign(self.base, "it is not an object", body)
            missing = [field for field in fields if field not in one]
            # Some fields can be missing in the answer of an older server.
            if len(missing) * 2 > len(fields) or USED.intersection(missing):
                raise foreign(self.base, f"it lacks {', '.join(missing)}", body)
        return body

    def parse(self, answer: httpx.Response) -> Any:
        try:
            return answer.json()
        except (ValueError, RecursionError) as error:
            start = answer.content[:40].decode("utf-8", "replace")
            raise foreign(self.base, f"it is not JSON: {start!r}", error) from error

    async def remove(self, path: str, **sending: Any) -> None:
        """Deletes the resource at a path. If a retry finds nothing there, the first attempt
        deleted it."""
        maybe_done = MaybeDone()
        try:
            self.read("DELETE", path, await self.exchange("DELETE", path, again=True, maybe_done=maybe_done, **sending))
        except ProblemError as error:
            if not (maybe_done.is_so and error.code == "not_found"):
                raise

    async def exchange(
        self,
        method: str,
        path: str,
        *,
        at: Mapping[str, str] | None = None,
        query: Mapping[str, QueryValue] | None = None,
        headers: Mapping[str, str | None] | None = None,
        body: object = None,
        again: bool = False,
        anonymous: bool = False,
        wait: float = 0.0,
        maybe_done: MaybeDone | None = None,
        retry_time: float | None = None,
    ) -> httpx.Response:
        """Sends until there is a final response, and returns it if it is a success.

        ``again``: doing it twice is doing it once. Else it is repeated only when the server
        certainly did not do it. ``wait``: seconds that the server waits before it answers.
        ``retry_time``: instead of the client's own.
        """
        limit = self.retry_time if retry_time is None else retry_time
        begun = time.monotonic()
        request = self._request(method, path, at or {}, query or {}, headers or {}, body)
        attempt = 1
        while True:
            answer, error, maybe = await self._send(request, anonymous, wait + self.answer_time)
            if answer is not None:
                return answer
            asked = error.retry_after or 0.0 if isinstance(error, ProblemError) else 0.0
            pause = max(backoff(attempt), asked)
            over = self.gives_up(attempt, time.monotonic() - begun + pause, limit)
            if not error.retryable or over or pause > LONGEST_WAIT or (maybe and not again):
                raise error
            if maybe_done is not None:
                maybe_done.is_so = maybe_done.is_so or maybe
            await asyncio.sleep(pause)
            attempt += 1

    def gives_up(self, failures: int, seconds: float, retry_time: float) -> bool:
        """Whether to end the attempts after so many failures in this time. A server that never
        answered has probably another address."""
        return failures >= ATTEMPTS and (not self.worked or seconds > retry_time)

    async def _send(
        self, request: dict[str, Any], anonymous: bool, limit: float
    ) -> tuple[httpx.Response, RcrtError, bool] | tuple[None, RcrtError, bool]:
        renewed = False
        while True:
            token = None
            try:
                token = None if anonymous else await self.tokens.token()
                # No other server can get the token, so redirects are not followed.
                sending = self.http.request(
                    **authorized(request, token), timeout=httpx.Timeout(limit, connect=min(limit, CONNECT_TIME)), follow_redirects=False
                )
                answer = await asyncio.wait_for(sending, limit)
            except RcrtError:
                raise
            except (httpx.TransportError, httpx.DecodingError, asyncio.TimeoutError, TimeoutError) as error:
                if isinstance(error, (httpx.LocalProtocolError, httpx.UnsupportedProtocol)):
                    raise not_sent(error) from error
                unreachable = unanswered(self.base, error, limit)
                return None, unreachable, not isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout))
            except Exception as error:
                # Values that are no header or URL, a closed client, or what the caller's own HTTP
                # client raises.
                raise not_sent(error) from error
            if answer.is_success:
                self.worked = True
                return answer, RcrtError("", "", False), False
            # A token can expire early, or the server's key can change, so try one new token.
            if answer.status_code == 401 and not renewed and token is not None and self.tokens.refused(token):
                renewed = True
                continue
            problem = problem_of(self.base, answer)
            self.worked = self.worked or problem.code != "foreign"
            return None, problem, answer.status_code >= 500

    def _request(
        self,
        method: str,
        path: str,
        at: Mapping[str, str],
        query: Mapping[str, QueryValue],
        headers: Mapping[str, str | None],
        body: object,
    ) -> dict[str, Any]:
        for name, value in at.items():
            # An empty segment would be another path, and so would these two.
            if not isinstance(value, str) or value in ("", ".", ".."):
                raise invalid_argument(f"{name} must not be empty, . or ..; it is {value!r}")
            try:
                path = path.replace("{" + name + "}", quote(value, safe=""))
            except UnicodeEncodeError as error:
                raise invalid_argument(f"{name} is not text that can be in a URL: {value!r}", error) from error
        pairs: list[tuple[str, str]] = []
        for name, given in query.items():
            if given is None:
                continue
            for one in given if isinstance(given, list) else [given]:
                pairs.append((name, str(one).lower() if isinstance(one, bool) else str(one)))
        sent = {name: value for name, value in headers.items() if value is not None}
        request: dict[str, Any] = {"method": method, "url": self.base + path, "params": pairs, "headers": sent}
        if body is not None:
            request["content"] = as_json("the body", body)
            sent["content-type"] = "application/json"
        return request


def as_json(name: str, value: object) -> bytes:
    """As UTF-8, without escapes that would make a large text larger. NaN is not JSON."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise invalid_argument(f"{name} is not JSON: {error}", error) from error


def unanswered(base: str, error: Exception, time: float) -> Unreachable:
    """The failure of a request that got no response."""
    # Most timeouts have no text.
    why = str(error) or type(error).__name__
    if not str(error) and isinstance(error, httpx.ConnectTimeout):
        why = f"no connection in {min(time, CONNECT_TIME):g} s"
    elif not str(error) and isinstance(error, (httpx.TimeoutException, asyncio.TimeoutError, TimeoutError)):
        why = f"no response in {time:g} s"
    return Unreachable(f"no answer from {base}: {why}; is the server running?", error)


def not_sent(error: Exception) -> RcrtError:
    return invalid_argument(f"the request cannot be sent: {str(error) or type(error).__name__}", error)


def authorized(request: dict[str, Any], token: str | None) -> dict[str, Any]:
    if token is None:
        return request
    return {**request, "headers": {**request["headers"], "authorization": f"Bearer {token}"}}


def checked_retry(seconds: float) -> float:
    """Time for attempts, which can also be endless."""
    if not isinstance(seconds, (int, float)) or not seconds >= 0:
        raise invalid_argument(f"retry_time must be seconds, 0 or more; it is {seconds!r}")
    return float(seconds)


def _server_url(url: str) -> httpx.URL:
    cause: Exception | None = None
    try:
        base = httpx.URL(url)
        if base.scheme in ("http", "https") and base.host:
            return base
    except (httpx.InvalidURL, TypeError, ValueError) as error:
        cause = error
    message = f"{url!r} is not a server URL; write it with its scheme, such as http://127.0.0.1:8081"
    raise RcrtError(message, "invalid_url", False, cause)


def _is_this_machine(host: str) -> bool:
    return host in ("localhost", "::1") or host.endswith(".localhost") or host.startswith("127.")
