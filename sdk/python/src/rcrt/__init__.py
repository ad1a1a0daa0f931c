"""A client of RCRT's tool runtime, for asyncio.

It handles lost connections: it retries what is safe to retry, resumes the event stream where it
broke, and renews tokens before they expire. The shapes on the wire are in :mod:`rcrt.types`.

    async with Rcrt("http://127.0.0.1:8081", token=token) as client:
        print(await client.call("calculator", {"expression": "6 * 7"}))
"""

from . import models, types
from ._client import Rcrt
from ._credentials import AgentKey, Credentials, Open, Token
from ._events import Event, EventItem, Missed
from ._parts import is_large_result, large_result
from .errors import ProblemError, RcrtError, StillRunning, ToolError, Unreachable

__all__ = [
    "AgentKey",
    "Credentials",
    "Event",
    "EventItem",
    "Missed",
    "Open",
    "ProblemError",
    "Rcrt",
    "RcrtError",
    "StillRunning",
    "Token",
    "ToolError",
    "Unreachable",
    "is_large_result",
    "large_result",
    "models",
    "types",
]
__version__ = "0.1.0"
