"""The server's routes as methods. Names on the wire stay as they are."""

from __future__ import annotations

import asyncio
import json
import math
import time as clock
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from types import TracebackType
from typing import Any, Literal, Union, cast

import httpx

from . import types
from ._credentials import Credentials, Token
from ._events import EventItem, follow
from ._transport import ANSWER_TIME, QueryValue, Transport, backoff, decoded, etag
from .errors import ProblemError, StillRunning, ToolError

Tags = Union[str, Sequence[str], None]
Change = Callable[[types.Breadcrumb], Union[types.BreadcrumbChanges, None, Awaitable[Union[types.BreadcrumbChanges, None]]]]

#: The longest that the server waits in one round trip, in seconds.
ROUND = 60.0


class Rcrt:
    """A server's records, as one agent sees them. Connects to nothing before the first call.

    :param url: such as ``http://127.0.0.1:8081``; a path in it goes before the server's paths.
    :param credentials: an :class:`AgentKey`, :class:`Open`, or a :class:`Token` (``token=`` is short for it).
    :param http: another client than one of its own; it stays open when this one is closed.
    """

    def __init__(
        self,
        url: str,
        credentials: Credentials | None = None,
        *,
        token: str | None = None,
        http: httpx.AsyncClient | None = None,
    ) -> None:
        if (credentials is None) == (token is None):
            raise ValueError("give either credentials or a token")
        self._transport = Transport(url, credentials or Token(token or ""), http)

    async def __aenter__(self) -> Rcrt:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await self._transport.close()

    async def token(self) -> str:
        """A token that is good for a while, for other programs."""
        return await self._transport.tokens.token()

    # Records

    async def create_breadcrumb(
        self, record: types.NewBreadcrumb, *, idempotency_key: str | None = None, traceparent: str | None = None
    ) -> types.Created:
        """Writes a record. A lost answer writes no second one: without a key of the caller's own it gets one."""
        headers = {"idempotency-key": idempotency_key or str(uuid.uuid4()), "traceparent": traceparent}
        created = await self._transport.json("POST", "/breadcrumbs", body=record, headers=headers, again=True)
        # With a key of ours, a replay is our own repetition and no news to the caller.
        created["replayed"] = bool(created.get("replayed")) and idempotency_key is not None
        return cast(types.Created, created)

    async def get_breadcrumb(self, id: str) -> types.BreadcrumbView:
        """The short view, as a model reads it: without owner, audit and TTL fields."""
        return cast(types.BreadcrumbView, await self._read("/breadcrumbs/{id}", {"id": id}))

    async def get_full_breadcrumb(self, id: str) -> types.Breadcrumb:
        """The record with everything."""
        return cast(types.Breadcrumb, await self._read("/breadcrumbs/{id}/full", {"id": id}))

    async def get_history(self, id: str) -> list[types.BreadcrumbVersion]:
        """All versions, the newest first."""
        return cast(list[types.BreadcrumbVersion], await self._read("/breadcrumbs/{id}/history", {"id": id}))

    async def update_breadcrumb(self, id: str, version: int, changes: types.BreadcrumbChanges) -> types.Breadcrumb:
        """Changes the version that was read; another one is a ``version_conflict`` and stays as it is."""
        headers = {"if-match": etag(version)}
        return cast(
            types.Breadcrumb,
            await self._transport.json("PATCH", "/breadcrumbs/{id}", at={"id": id}, headers=headers, body=changes),
        )

    async def change_breadcrumb(self, id: str, change: Change, *, attempts: int = 10) -> types.Breadcrumb:
        """Reads, changes and writes, and again where somebody else was quicker. ``None`` from ``change`` leaves the
        record as it is."""
        attempt = 1
        while True:
            record = await self.get_full_breadcrumb(id)
            changes = change(record)
            if isinstance(changes, Awaitable):
                changes = await changes
            if changes is None:
                return record
            try:
                return await self.update_breadcrumb(id, record["version"], changes)
            except ProblemError as error:
                if error.code != "version_conflict" or attempt >= attempts:
                    raise
            await asyncio.sleep(backoff(attempt) / 4)
            attempt += 1

    async def delete_breadcrumb(self, id: str, version: int | None = None) -> None:
        """Deletes a record; with a version, only if it is at that one."""
        headers = {"if-match": None if version is None else etag(version)}
        await self._transport.remove("/breadcrumbs/{id}", at={"id": id}, headers=headers)

    async def list_breadcrumbs(
        self,
        *,
        tag: Tags = None,
        any_tag: Tags = None,
        schema_name: str | None = None,
        context_match: Sequence[types.ContextMatch] | None = None,
        include_context: bool | None = None,
        limit: int | None = None,
        offset: int | None = None,
    ) -> list[types.BreadcrumbListItem]:
        """Newest change first. ``tag``: all of these; ``any_tag``: at least one of these."""
        query = _selection(tag, any_tag, schema_name, context_match, include_context)
        query |= {"limit": limit, "offset": offset}
        found = await self._transport.json("GET", "/breadcrumbs", query=query, again=True)
        return cast(list[types.BreadcrumbListItem], found)

    async def each_breadcrumb(self, *, limit: int = 500, **wanted: Any) -> AsyncGenerator[types.BreadcrumbListItem, None]:
        """All of them, page by page; takes what :meth:`list_breadcrumbs` takes."""
        # A record that is changed meanwhile moves to the front and pushes others onto the next page.
        seen: set[str] = set()
        offset = 0
        while True:
            page = await self.list_breadcrumbs(limit=limit, offset=offset, **wanted)
            for item in page:
                if item["id"] not in seen:
                    seen.add(item["id"])
                    yield item
            if len(page) < limit:
                return
            offset += limit

    async def search_breadcrumbs(
        self,
        q: str | None = None,
        *,
        nn: int | None = None,
        mode: Literal["vector", "text", "hybrid"] | None = None,
        qvec: Sequence[float] | None = None,
        tag: Tags = None,
        any_tag: Tags = None,
        schema_name: str | None = None,
        context_match: Sequence[types.ContextMatch] | None = None,
        include_context: bool | None = None,
    ) -> list[types.BreadcrumbListItem]:
        """Best match first, ``nn`` at most.

        :param mode: by meaning, by words, or both joined; what the server can when absent.
        :param qvec: the vector of the question, for who has made it already.
        """
        query = _selection(tag, any_tag, schema_name, context_match, include_context)
        query |= {"q": q, "nn": nn, "mode": mode, "qvec": None if qvec is None else json.dumps(list(qvec))}
        found = await self._transport.json("GET", "/breadcrumbs/search", query=query, again=True)
        return cast(list[types.BreadcrumbListItem], found)

    # Events

    def events(
        self,
        *,
        after: int | None = None,
        filters: types.Selector | None = None,
        agent_id: str | None = None,
        all: bool | None = None,
        silence: float = 45.0,
        on_reconnect: Callable[[Exception], None] | None = None,
    ) -> AsyncGenerator[EventItem, None]:
        """Each event once, in order, across lost connections and restarts of the server. Leave the loop to end it.

        :param after: the number of the last event seen; from now on when absent. 0 is everything that is kept.
        :param filters: a selector: ``any_tags``, ``all_tags``, ``schema_name``, ``context_match``.
        :param agent_id: whose selectors count; the caller's own when absent.
        :param all: everything that the caller may see, whatever its own selectors say.
        :param silence: after how many seconds without a word, a ping included, a connection is taken for dead.
        :param on_reconnect: told of each connection that is lost, with why, before the next one is made.
        """
        query: dict[str, QueryValue] = {
            "filters": None if filters is None else json.dumps(filters),
            "agent_id": agent_id,
            "all": all,
        }
        return follow(self._transport, after, query, silence, on_reconnect)

    async def latest_event(self) -> int:
        """The number of the newest event; 0 when there is none."""
        return int((await self._read("/events/latest"))["number"])

    async def create_selector(self, selector: types.Selector) -> types.SelectorSubscription:
        """From now on the agent's own streams, open ones too, carry only what one of its selectors means."""
        made = await self._transport.json("POST", "/subscriptions/selectors", body=selector)
        return cast(types.SelectorSubscription, made)

    async def list_selectors(self) -> list[types.SelectorSubscription]:
        return cast(list[types.SelectorSubscription], await self._read("/subscriptions/selectors"))

    async def update_selector(self, id: str, selector: types.Selector) -> types.SelectorSubscription:
        path = "/subscriptions/selectors/{id}"
        changed = await self._transport.json("PUT", path, at={"id": id}, body=selector, again=True)
        return cast(types.SelectorSubscription, changed)

    async def delete_selector(self, id: str) -> None:
        await self._transport.remove("/subscriptions/selectors/{id}", at={"id": id})

    # Rights

    async def list_grants(self, *, breadcrumb_id: str | None = None) -> list[types.AclEntry]:
        """For a curator all of the tenant; for others those on records of their own making."""
        return cast(list[types.AclEntry], await self._read("/acl", query={"breadcrumb_id": breadcrumb_id}))

    async def grant_access(self, grant: types.AclChange) -> str:
        """Opens a record to an agent or a tenant; gives the grant's id."""
        return str((await self._transport.json("POST", "/acl/grant", body=grant, again=True))["id"])

    async def revoke_access(self, grant: types.AclChange) -> int:
        """Takes actions from the grantee; gives how many grants changed."""
        return int((await self._transport.json("POST", "/acl/revoke", body=grant, again=True))["rows"])

    # Tools

    async def tools(self, *, profile: types.Profile | None = None) -> types.Catalog:
        """The tools that the agent's profile sees, and those that wait for something."""
        return cast(types.Catalog, await self._read("/tools", query={"profile": profile}))

    async def tools_for(
        self, format: Literal["openai", "anthropic", "mcp"], *, profile: types.Profile | None = None
    ) -> Any:
        """The same in the form that a model's interface takes."""
        return await self._read("/tools", query={"format": format, "profile": profile})

    async def tool(self, name: str) -> types.CatalogEntry:
        return cast(types.CatalogEntry, await self._read("/tools/{name}", {"name": name}))

    async def call(self, tool: str, input: Any = None, **options: Any) -> Any:
        """Calls a tool and gives its output; :class:`ToolError` when it failed. Takes what :meth:`invoke` takes."""
        response = await self.invoke(tool, input, **options)
        if response["status"] != "success":
            raise ToolError(response)
        return response.get("output")

    async def invoke(
        self,
        tool: str,
        input: Any = None,
        *,
        wait: float = 300.0,
        idempotency_key: str | None = None,
        workspace: str | None = None,
        session: str | None = None,
        model: str | None = None,
        max_result_chars: int | None = None,
        deadline_ms: int | None = None,
        request_id: str | None = None,
        traceparent: str | None = None,
        cancel: bool = False,
    ) -> types.ToolResponse:
        """Calls a tool and gives its whole answer, which may tell of a failure. Broken connections make no second call.

        :param wait: how many seconds to wait for the answer in all; then :class:`StillRunning`.
        :param idempotency_key: the same key with the same call gets the answer of the first.
        :param deadline_ms: milliseconds from now within which the runtime answers, else with ``Timeout``.
        :param cancel: cancels the call when this task is cancelled.
        """
        key = idempotency_key or str(uuid.uuid4())
        said = {
            "input": {} if input is None else input,
            "workspace": workspace,
            "session": session,
            "model": model,
            "max_result_chars": max_result_chars,
            "deadline_ms": deadline_ms,
            "requestId": request_id,
        }
        body = {name: value for name, value in said.items() if value is not None}
        ends = clock.monotonic() + wait
        early = 1
        try:
            while True:
                begun = clock.monotonic()
                # In whole seconds; the last round may be cut to nothing, which asks once more whether it is there.
                seconds = math.floor(min(ROUND, max(0.0, ends - begun)))
                answer = await self._ask(tool, key, body, f"wait={seconds}", traceparent, seconds + ROUND)
                if answer.status_code != 202:
                    return cast(types.ToolResponse, decoded(answer))
                if clock.monotonic() + 1 > ends:
                    raise StillRunning(tool, cast(types.Accepted, decoded(answer)), key)
                # A server that is about to end answers before the time; the next one knows the request.
                if clock.monotonic() - begun < seconds / 2:
                    await asyncio.sleep(backoff(early))
                    early += 1
        except asyncio.CancelledError:
            if cancel:
                await asyncio.shield(self._cancel(tool, key, body))
            raise

    async def _ask(
        self, tool: str, key: str, body: dict[str, Any], prefer: str, traceparent: str | None, time: float
    ) -> httpx.Response:
        headers = {"prefer": prefer, "idempotency-key": key, "traceparent": traceparent}
        return await self._transport.exchange(
            "POST", "/tools/{name}/invoke", at={"name": tool}, headers=headers, body=body, again=True, time=time
        )

    async def _cancel(self, tool: str, key: str, body: dict[str, Any]) -> None:
        """The key tells which request it was, also when its answer never came."""
        try:
            answer = await self._ask(tool, key, body, "respond-async", None, ANSWER_TIME)
            if answer.status_code == 202:
                await self.cancel_call(decoded(answer)["request"])
        except Exception:  # The caller hears of the cancellation; that it got through was never promised.
            return

    # Calls

    async def get_call(self, request_id: str) -> types.Call:
        """Where a request stands."""
        return cast(types.Call, await self._read("/calls/{request_id}", {"request_id": request_id}))

    async def cancel_call(self, request_id: str) -> types.Call:
        at = {"request_id": request_id}
        return cast(types.Call, await self._transport.json("POST", "/calls/{request_id}/cancel", at=at, again=True))

    # For runners

    async def claim_calls(self, wanted: types.ClaimRequest) -> list[types.Claim]:
        """Not repeated when the answer was lost: those leases end by themselves, a second claim would take more."""
        return cast(list[types.Claim], await self._transport.json("POST", "/calls/claim", body=wanted))

    async def start_call(self, lease: types.Lease, max_attempts: int) -> None:
        body = {"lease": lease, "max_attempts": max_attempts}
        await self._transport.json("POST", "/calls/start", body=body, again=True)

    async def heartbeat(self, leases: list[types.Lease], lease_ms: int) -> list[types.HeldLease]:
        body = {"leases": leases, "lease_ms": lease_ms}
        return cast(
            list[types.HeldLease], await self._transport.json("POST", "/calls/heartbeat", body=body, again=True)
        )

    async def complete_call(self, lease: types.Lease, response: types.NewBreadcrumb) -> str:
        """Writes the response and finishes the call; gives the response's id."""
        body = {"lease": lease, "response": response}
        return str((await self._transport.json("POST", "/calls/complete", body=body))["id"])

    async def release_call(self, lease: types.Lease, release: types.Release) -> None:
        await self._transport.json("POST", "/calls/release", body={"lease": lease, "release": release})

    # Secrets

    async def create_secret(self, secret: types.NewSecret) -> types.SecretInfo:
        return cast(types.SecretInfo, await self._transport.json("POST", "/secrets", body=secret))

    async def list_secrets(self) -> list[types.SecretInfo]:
        """Without their values."""
        return cast(list[types.SecretInfo], await self._read("/secrets"))

    async def update_secret(self, id: str, changes: types.SecretChanges) -> types.SecretInfo:
        # A new value counts as a new version each time; everything else may be said twice.
        again = changes.get("value") is None
        return cast(
            types.SecretInfo,
            await self._transport.json("PUT", "/secrets/{id}", at={"id": id}, body=changes, again=again),
        )

    async def delete_secret(self, id: str) -> None:
        await self._transport.remove("/secrets/{id}", at={"id": id})

    async def decrypt_secret(self, id: str, reason: str, *, tool_id: str | None = None) -> str:
        """The value. Who asked, when and why is written to the audit log."""
        body = {"reason": reason} if tool_id is None else {"reason": reason, "tool_id": tool_id}
        found = await self._transport.json("POST", "/secrets/{id}/decrypt", at={"id": id}, body=body, again=True)
        return str(found["value"])

    async def grant_secret(self, id: str, grant: types.NewGrant) -> types.SecretInfo:
        """Lets a tool, by its record or its name, use a secret."""
        return cast(
            types.SecretInfo,
            await self._transport.json("POST", "/secrets/{id}/grants", at={"id": id}, body=grant, again=True),
        )

    async def revoke_secret(self, id: str, tool_id: str) -> types.SecretInfo:
        at = {"id": id, "tool_id": tool_id}
        return cast(types.SecretInfo, await self._transport.json("DELETE", "/secrets/{id}/grants/{tool_id}", at=at))

    # Agents

    async def create_agent(self, agent: types.NewAgent) -> types.NewAgentKey:
        """The key is shown this once."""
        return cast(types.NewAgentKey, await self._transport.json("POST", "/agents", body=agent))

    async def put_agent(self, id: str, agent: types.AgentRegistration) -> types.Registered:
        """Makes an agent of an id of the caller's choice (its key is in the answer), or changes one."""
        return cast(types.Registered, await self._transport.json("POST", "/agents/{id}", at={"id": id}, body=agent))

    async def list_agents(self) -> list[types.AgentInfo]:
        return cast(list[types.AgentInfo], await self._read("/agents"))

    async def get_agent(self, id: str) -> types.AgentInfo:
        return cast(types.AgentInfo, await self._read("/agents/{id}", {"id": id}))

    async def delete_agent(self, id: str) -> None:
        await self._transport.remove("/agents/{id}", at={"id": id})

    # Tenants

    async def list_tenants(self) -> list[types.TenantInfo]:
        """All of them for the operator, else the caller's own."""
        return cast(list[types.TenantInfo], await self._read("/tenants"))

    async def get_tenant(self, id: str) -> types.TenantInfo:
        return cast(types.TenantInfo, await self._read("/tenants/{id}", {"id": id}))

    async def put_tenant(self, id: str, name: str) -> types.TenantDone:
        """Makes a tenant (its first agent's key is in the answer), or renames it."""
        body = {"name": name}
        return cast(types.TenantDone, await self._transport.json("PUT", "/tenants/{id}", at={"id": id}, body=body))

    async def delete_tenant(self, id: str) -> None:
        await self._transport.remove("/tenants/{id}", at={"id": id})

    # Webhooks

    async def create_webhook(self, agent_id: str, webhook: types.NewWebhook) -> types.WebhookInfo:
        """Each event that the agent may hear is posted to the address, signed."""
        made = await self._transport.json("POST", "/agents/{id}/webhooks", at={"id": agent_id}, body=webhook)
        return cast(types.WebhookInfo, made)

    async def list_webhooks(self, agent_id: str) -> list[types.WebhookInfo]:
        return cast(list[types.WebhookInfo], await self._read("/agents/{id}/webhooks", {"id": agent_id}))

    async def delete_webhook(self, agent_id: str, id: str) -> None:
        await self._transport.remove("/agents/{id}/webhooks/{wid}", at={"id": agent_id, "wid": id})

    async def pause_webhook(self, agent_id: str, id: str) -> types.WebhookInfo:
        at = {"id": agent_id, "wid": id}
        paused = await self._transport.json("POST", "/agents/{id}/webhooks/{wid}/pause", at=at, again=True)
        return cast(types.WebhookInfo, paused)

    async def resume_webhook(self, agent_id: str, id: str) -> types.WebhookInfo:
        at = {"id": agent_id, "wid": id}
        resumed = await self._transport.json("POST", "/agents/{id}/webhooks/{wid}/resume", at=at, again=True)
        return cast(types.WebhookInfo, resumed)

    async def set_webhook_secret(self, agent_id: str, secret: str) -> None:
        """What the agent's deliveries are signed with."""
        body = {"secret": secret}
        await self._transport.json("POST", "/agents/{id}/secret", at={"id": agent_id}, body=body, again=True)

    async def list_dead_letters(
        self, *, limit: int | None = None, offset: int | None = None
    ) -> list[types.DeadLetter]:
        """Deliveries that were given up, the newest first; the end is an empty page."""
        return cast(list[types.DeadLetter], await self._read("/dlq", query={"limit": limit, "offset": offset}))

    async def retry_dead_letter(self, id: str) -> None:
        await self._transport.json("POST", "/dlq/{id}/retry", at={"id": id})

    async def delete_dead_letter(self, id: str) -> None:
        await self._transport.remove("/dlq/{id}", at={"id": id})

    async def delete_dead_letters(self) -> int:
        """All of them; gives how many there were."""
        return int((await self._transport.json("DELETE", "/dlq"))["deleted"])

    # Operations

    async def revoke_tokens(
        self, *, token: str | None = None, jti: str | None = None, agent_id: str | None = None, all: bool = False
    ) -> types.RevokedTokens:
        """Ends tokens before they expire; without an argument the client's own."""
        named = {"token": token, "jti": jti, "agent_id": agent_id}
        body: dict[str, Any] = {name: value for name, value in named.items() if value is not None}
        if all:
            body["all"] = True
        return cast(types.RevokedTokens, await self._transport.json("POST", "/auth/revoke", body=body))

    async def stream_ticket(self) -> types.StreamTicket:
        """A one-time ticket for a browser's ``EventSource``, which sends no header."""
        return cast(types.StreamTicket, await self._transport.json("POST", "/events/ticket"))

    async def egress_log(
        self,
        *,
        tool: str | None = None,
        host: str | None = None,
        agent_id: str | None = None,
        call: str | None = None,
        outcome: str | None = None,
        since: str | None = None,
        until: str | None = None,
        before: int | None = None,
        limit: int | None = None,
    ) -> types.EgressPage:
        """What tools and webhooks asked of other servers, newest first; ``before`` is the ``next`` of the page before."""
        query: dict[str, QueryValue] = {
            "tool": tool,
            "host": host,
            "agent_id": agent_id,
            "call": call,
            "outcome": outcome,
            "since": since,
            "until": until,
            "before": before,
            "limit": limit,
        }
        return cast(types.EgressPage, await self._read("/audit/egress", query=query))

    async def hygiene_stats(self) -> types.HygieneReport:
        """How the taking out of ended records goes."""
        return cast(types.HygieneReport, await self._read("/hygiene/stats"))

    async def run_hygiene(self) -> types.HygieneRunReport:
        """Takes out ended records now."""
        return cast(types.HygieneRunReport, await self._transport.json("POST", "/hygiene/run", again=True))

    async def health(self) -> types.Health:
        """Whether the server and its database are well; :class:`ProblemError` ``unavailable`` when they are not."""
        return cast(types.Health, await self._transport.json("GET", "/health", anonymous=True))

    async def _read(
        self, path: str, at: dict[str, str] | None = None, query: dict[str, QueryValue] | None = None
    ) -> Any:
        return await self._transport.json("GET", path, at=at, query=query, again=True)


def _selection(
    tag: Tags,
    any_tag: Tags,
    schema_name: str | None,
    context_match: Sequence[types.ContextMatch] | None,
    include_context: bool | None,
) -> dict[str, QueryValue]:
    return {
        "tag": _several(tag),
        "any_tag": _several(any_tag),
        "schema_name": schema_name,
        "context_match": None if context_match is None else json.dumps(list(context_match)),
        "include_context": include_context,
    }


def _several(tags: Tags) -> list[str] | None:
    return tags if tags is None else [tags] if isinstance(tags, str) else list(tags)
