"""Errors: the server refused a request, the server was unreachable, or a tool failed."""

from __future__ import annotations

import time
from email.utils import parsedate_to_datetime
from typing import Any, cast

import httpx

from .types import Accepted, Problem, ToolResponse, Violation


class RcrtError(Exception):
    """Everything that this client raises, apart from the cancellation of a task."""

    def __init__(self, message: str, code: str, retryable: bool, cause: object = None) -> None:
        super().__init__(message)
        #: A stable name: a problem's code, a tool's error code, or one of the client:
        #: ``invalid_url``, ``invalid_argument``, ``unreachable``, ``foreign`` (the answer is not
        #: from an RCRT server), ``still_running``, ``no_parts``.
        self.code = code
        #: What it came from: an exception, a problem document, or a tool's response.
        self.cause = message if cause is None else cause
        if isinstance(cause, BaseException):
            self.__cause__ = cause
        #: Whether a retry can help.
        self.retryable = retryable


class ProblemError(RcrtError):
    """The server refused the request, with a reason."""

    def __init__(self, problem: Problem, status: int, retry_after: float | None, request_id: str | None) -> None:
        super().__init__(f"{problem['title']}: {problem['detail']}", problem["code"], status in (429, 502, 503, 504), problem)
        self.problem = problem
        #: The HTTP status.
        self.status = status
        #: The pause in seconds that the server asked for.
        self.retry_after = retry_after
        #: The id of the request in the server's log.
        self.request_id = request_id

    @property
    def violations(self) -> list[Violation]:
        """The invalid fields of the input."""
        return self.problem.get("violations", [])


class Unreachable(RcrtError):
    """No response: the server was unreachable, or the connection broke. The request was possibly
    done."""

    def __init__(self, message: str, cause: object = None) -> None:
        super().__init__(message, "unreachable", True, cause)


class ToolError(RcrtError):
    """The tool failed."""

    def __init__(self, response: ToolResponse) -> None:
        message = f"{response['tool']}: {response.get('error') or 'failed'}"
        code = response.get("error_code") or "ExecutionFailed"
        super().__init__(message, code, bool(response.get("is_retryable")), response)
        self.response = response

    @property
    def details(self) -> Any:
        """Details for programs, from the tool."""
        return self.response.get("error_details")


class StillRunning(RcrtError):
    """The call continues, but the caller's time limit is over."""

    def __init__(self, tool: str, accepted: Accepted, idempotency_key: str) -> None:
        message = f"{tool} got no response in time; request {accepted['request']} continues"
        super().__init__(message, "still_running", True, accepted)
        #: The request, which continues.
        self.accepted = accepted
        #: The same key with the same call continues to wait.
        self.idempotency_key = idempotency_key


def invalid_argument(message: str, cause: object = None) -> RcrtError:
    """A mistake in the arguments of a method."""
    return RcrtError(message, "invalid_argument", False, cause)


def foreign(base: str, why: str, cause: object = None) -> RcrtError:
    """A successful answer that no RCRT server gives."""
    message = f"the answer of {base} is not from an RCRT server ({why}); is the address right?"
    return RcrtError(message, "foreign", False, cause)


def problem_of(base: str, answer: httpx.Response) -> ProblemError:
    """The problem in a response (already read) that is not a success. It can come from a proxy,
    in another format."""
    try:
        read = answer.json()
    except (ValueError, RecursionError):
        read = None
    if isinstance(read, dict) and isinstance(read.get("code"), str):
        bare = {"type": "about:blank", "title": answer.reason_phrase, "status": answer.status_code, "detail": ""}
        problem = cast(Problem, {**bare, **read})
    else:
        detail = f"the answer of {base} is {answer.status_code}, and not from an RCRT server; is the address right?"
        if 300 <= answer.status_code < 400:
            to = answer.headers.get("location", "another address")
            detail = f"{base} redirects to {to}, and the client follows no redirects; give it the server's own URL"
        title = answer.reason_phrase or "Refused"
        problem = {"type": "about:blank", "title": title, "status": answer.status_code, "detail": detail, "code": "foreign"}
    return ProblemError(problem, answer.status_code, _retry_after(answer), answer.headers.get("x-request-id"))


def _retry_after(answer: httpx.Response) -> float | None:
    """``Retry-After`` in seconds. It can be seconds or a date."""
    text = answer.headers.get("retry-after", "").strip()
    if text.isascii() and text.isdigit():
        return float(text)
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except (ValueError, OverflowError, TypeError, IndexError):
        return None
