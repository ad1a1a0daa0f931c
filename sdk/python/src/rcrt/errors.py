"""What can go wrong: a refusal of the server, no server, or a tool that failed."""

from __future__ import annotations

import time
from email.utils import parsedate_to_datetime
from typing import Any, cast

import httpx

from .types import Accepted, Problem, ToolResponse, Violation


class RcrtError(Exception):
    """Everything that this client raises of its own accord."""

    def __init__(self, message: str, code: str, retryable: bool) -> None:
        super().__init__(message)
        #: A stable name: a problem's code, a tool's error code, ``unreachable`` or ``still_running``.
        self.code = code
        #: Whether the same again may go better.
        self.retryable = retryable


class ProblemError(RcrtError):
    """The server refused, and says why."""

    def __init__(self, problem: Problem, status: int, retry_after: float | None, request_id: str | None) -> None:
        super().__init__(f"{problem['title']}: {problem['detail']}", problem["code"], status in (429, 502, 503, 504))
        self.problem = problem
        #: The HTTP status.
        self.status = status
        #: How many seconds the server asked to wait before the next attempt.
        self.retry_after = retry_after
        #: Under this id the server's log tells more.
        self.request_id = request_id

    @property
    def violations(self) -> list[Violation]:
        """Everything that is wrong with the input, a field each."""
        return self.problem.get("violations", [])


class Unreachable(RcrtError):
    """No answer: no server is there, or the connection broke. What was asked may have been done."""

    def __init__(self, message: str) -> None:
        super().__init__(message, "unreachable", True)


class ToolError(RcrtError):
    """The tool answered that it failed."""

    def __init__(self, response: ToolResponse) -> None:
        message = f"{response['tool']}: {response.get('error') or 'failed'}"
        super().__init__(message, response.get("error_code") or "ExecutionFailed", bool(response.get("is_retryable")))
        self.response = response

    @property
    def details(self) -> Any:
        """For programs, as the tool gave it."""
        return self.response.get("error_details")


class StillRunning(RcrtError):
    """The call goes on, but the caller's time is up."""

    def __init__(self, tool: str, accepted: Accepted, idempotency_key: str) -> None:
        super().__init__(
            f"{tool} has not answered in time; its request {accepted['request']} stands", "still_running", True
        )
        #: The request that stands.
        self.accepted = accepted
        #: The same key with the same call waits on.
        self.idempotency_key = idempotency_key


def problem_of(answer: httpx.Response) -> ProblemError:
    """The problem in an answer (read already) that is no success. Proxies answer, too, and in words of their own."""
    try:
        read = answer.json()
    except ValueError:
        read = None
    if isinstance(read, dict) and isinstance(read.get("code"), str):
        bare = {"type": "about:blank", "title": answer.reason_phrase, "status": answer.status_code, "detail": ""}
        problem = cast(Problem, {**bare, **read})
    else:
        detail = f"the answer was {answer.status_code} from something that is no RCRT server; is the address right?"
        title = answer.reason_phrase or "Refused"
        problem = {"type": "about:blank", "title": title, "status": answer.status_code, "detail": detail, "code": "foreign"}
    return ProblemError(problem, answer.status_code, _retry_after(answer), answer.headers.get("x-request-id"))


def _retry_after(answer: httpx.Response) -> float | None:
    """In seconds: it comes as seconds or as a date."""
    text = answer.headers.get("retry-after", "").strip()
    if text.isascii() and text.isdigit():
        return float(text)
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except ValueError:
        return None
