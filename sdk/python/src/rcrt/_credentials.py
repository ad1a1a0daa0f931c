"""The client's credentials, and its current token."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Union

from .errors import invalid_argument
from .types import GivenToken, Profile, Role, TokenRequest


@dataclass(frozen=True)
class Token:
    """A fixed token. When it expires, so does the access."""

    token: str = field(repr=False)


@dataclass(frozen=True)
class AgentKey:
    """An agent's key. Tokens are fetched when needed and renewed before they expire."""

    owner_id: str
    agent_id: str
    key: str = field(repr=False)
    roles: list[Role] | None = None
    profile: Profile | None = None
    #: The lifetime of each token in seconds. The default is an hour.
    ttl_sec: int | None = None


@dataclass(frozen=True)
class Open:
    """A server with open auth: it gives a token to every caller."""

    owner_id: str | None = None
    agent_id: str | None = None
    roles: list[Role] | None = None
    ttl_sec: int | None = None


Credentials = Union[Token, AgentKey, Open]


def checked(credentials: Credentials | None, token: str | None) -> Credentials:
    """The one of them that is given."""
    if (credentials is None) == (token is None):
        raise invalid_argument("give either credentials or a token")
    given = Token(token) if token is not None else credentials
    if isinstance(given, Token) and not (isinstance(given.token, str) and given.token.strip()):
        raise invalid_argument("the token is empty; `rcrt token` prints one")
    if not isinstance(given, (Token, AgentKey, Open)):
        raise invalid_argument("credentials are an AgentKey, Open or Token; for a token there is token=")
    return given


class Tokens:
    def __init__(self, credentials: Credentials, fetch: Callable[[TokenRequest], Awaitable[GivenToken]]) -> None:
        self._credentials = credentials
        self._fetch = fetch
        self._held: tuple[str, float] | None = None
        self._renewing = asyncio.Lock()

    async def token(self) -> str:
        """A token that stays valid for a while. Concurrent callers share one request."""
        credentials = self._credentials
        if isinstance(credentials, Token):
            return credentials.token.strip()
        async with self._renewing:
            if self._held is not None and time.monotonic() < self._held[1]:
                return self._held[0]
            asked = time.monotonic()
            given = await self._fetch(_request(credentials))
            # It is renewed with a fifth of its lifetime left: clocks differ and requests take time.
            self._held = (given["token"], asked + given["expires_in"] * 0.8)
            return given["token"]

    def refused(self, token: str) -> bool:
        """Discards a token that the server refused. True if a new one can be requested."""
        if isinstance(self._credentials, Token):
            return False
        if self._held is not None and self._held[0] == token:
            self._held = None
        return True


def _request(credentials: AgentKey | Open) -> TokenRequest:
    request: TokenRequest = {}
    if credentials.owner_id is not None:
        request["owner_id"] = credentials.owner_id
    if credentials.agent_id is not None:
        request["agent_id"] = credentials.agent_id
    if isinstance(credentials, AgentKey):
        request["agent_key"] = credentials.key
        if credentials.profile is not None:
            request["profile"] = credentials.profile
    if credentials.roles is not None:
        request["roles"] = credentials.roles
    if credentials.ttl_sec is not None:
        request["ttl_sec"] = credentials.ttl_sec
    return request
