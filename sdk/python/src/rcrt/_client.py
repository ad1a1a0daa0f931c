"""The server's routes as methods. Names on the wire are not changed."""

from __future__ import annotations

import asyncio
import sys
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from types import TracebackType
from typing import Any, Literal, TypeVar, Union, cast, overload

import httpx

from . import models, types
from ._authoring import creation, test
from ._credentials import Credentials, checked
from ._events import EventItem, follow
from ._invoke import InvokeArguments, InvokeOptions, invoke, invoke_for
from ._parts import parts
from ._transport import ANSWER_TIME, RETRY_TIME, QueryValue, Transport, as_json, backoff, etag
from .errors import ProblemError, ToolError, foreign, invalid_argument

if sys.version_info >= (3, 11):
    from typing import Unpack
else:
    from typing_extensions import Unpack

T = TypeVar("T")
Tags = Union[str, Sequence[str], None]
Change = Callable[[types.Breadcrumb], Union[types.BreadcrumbChanges, None, Awaitable[Union[types.BreadcrumbChanges, None]]]]


class Rcrt:
    """A server's records, as one agent sees them. Does not connect before the first call.

    :param url: such as ``http://127.0.0.1:8081``. A path in it is the prefix of the server's paths.
    :param credentials: an :class:`AgentKey`, :class:`Open`, or a :class:`Token` (``token=`` is short for it).
    :param timeout: the seconds in which the server must answer each attempt of a request; for a
        call of a tool, the time to wait for its response is added.
    :param retry_time: how many seconds a request is tried again if the server cannot be reached but
        has answered this client before; a request makes at least six attempts. A server that has
        never answered gets no more than that, for about three seconds.
    :param http: an HTTP client to use, for example with a proxy. It stays open when this one is
        closed. Its own timeouts do not apply.
    """

    def __init__(
        self,
        url: str,
        credentials: Credentials | None = None,
        *,
        token: str | None = None,
        timeout: float = ANSWER_TIME,
        retry_time: float = RETRY_TIME,
        http: httpx.AsyncClient | None = None,
    ) -> None:
        self._transport = Transport(url, checked(credentials, token), timeout, http, retry_time)

    async def __aenter__(self) -> Rcrt:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await self._transport.close()

    async def token(self) -> str:
        """A token that stays valid for a while, for other programs."""
        return await self._transport.tokens.token()

    # Records

    async def create_breadcrumb(
        self, record: types.NewBreadcrumb, *, idempotency_key: str | None = None, traceparent: str | None = None
    ) -> types.Created:
        """Writes a record. If the response is lost, the repetition writes no second one: without
        an idempotency key the client makes one."""
        headers = {"idempotency-key": str(uuid.uuid4()) if idempotency_key is None else idempotency_key, "traceparent": traceparent}
        created = await self._transport.json("POST", "/breadcrumbs", body=record, headers=headers, again=True)
        # With the client's own key, a replay is a repetition by the client, which does not matter
        # to the caller.
        created["replayed"] = bool(created.get("replayed")) and idempotency_key is not None
        return cast(types.Created, created)

    async def get_breadcrumb(self, id: str) -> types.BreadcrumbView:
        """The short view, as a model reads it: without owner, audit and TTL fields."""
        return cast(types.BreadcrumbView, await self._read("/breadcrumbs/{id}", {"id": id}))

    async def get_full_breadcrumb(self, id: str) -> types.Breadcrumb:
        """The whole record."""
        return cast(types.Breadcrumb, await self._read("/breadcrumbs/{id}/full", {"id": id}))

    async def get_history(self, id: str) -> list[types.BreadcrumbVersion]:
        """All versions, the newest first."""
        return cast(list[types.BreadcrumbVersion], await self._read("/breadcrumbs/{id}/history", {"id": id}))

    async def update_breadcrumb(self, id: str, version: int, changes: types.BreadcrumbChanges) -> types.Breadcrumb:
        """Changes the version that was read. Another one is a ``version_conflict`` and does not
        change."""
        headers = {"if-match": etag(version)}
        return cast(
            types.Breadcrumb,
            await self._transport.json("PATCH", "/breadcrumbs/{id}", at={"id": id}, headers=headers, body=changes),
        )

    async def change_breadcrumb(self, id: str, change: Change, *, attempts: int = 10) -> types.Breadcrumb:
        """Reads, changes and writes, and repeats this after a conflict. ``None`` from ``change``
        leaves the record unchanged."""
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
        """Deletes a record. With a version, only if that is the current one."""
        headers = {"if-match": None if version is None else etag(version)}
        await self._transport.remove("/breadcrumbs/{id}", at={"id": id}, headers=headers)

    async def list_breadcrumbs(
        self,
        *,
        tag: Tags = None,
        any_tag: Tags = None,
        schema_name: str | None = None,
        context_match: Sequence[types.ContextMatch] | None = None,
        exclude_runtime: bool | None = None,
        include_context: bool | None = None,
        limit: int | None = None,
        offset: int | None = None,
    ) -> list[types.BreadcrumbListItem]:
        """Newest change first. ``tag``: all of these; ``any_tag``: at least one of these;
        ``exclude_runtime``: without tools, guides, calls, working memory, schedules and schemas."""
        query = _selection(tag, any_tag, schema_name, context_match, exclude_runtime, include_context)
        query |= {"limit": limit, "offset": offset}
        found = await self._transport.json("GET", "/breadcrumbs", query=query, again=True)
        return cast(list[types.BreadcrumbListItem], found)

    async def each_breadcrumb(
        self,
        *,
        tag: Tags = None,
        any_tag: Tags = None,
        schema_name: str | None = None,
        context_match: Sequence[types.ContextMatch] | None = None,
        exclude_runtime: bool | None = None,
        include_context: bool | None = None,
        limit: int = 500,
    ) -> AsyncGenerator[types.BreadcrumbListItem, None]:
        """All records, in pages of ``limit``. The arguments are those of
        :meth:`list_breadcrumbs`."""
        # A larger page would be cut, and then be taken for the last one.
        if not isinstance(limit, int) or not 1 <= limit <= 1000:
            raise invalid_argument(f"limit must be a number from 1 to 1000; it is {limit!r}")
        query = _selection(tag, any_tag, schema_name, context_match, exclude_runtime, include_context)
        # A record that changes meanwhile moves to the front and shifts others to the next page.
        seen: set[str] = set()
        offset = 0
        while True:
            page = await self._read("/breadcrumbs", query={**query, "limit": limit, "offset": offset})
            for item in page:
                if item.get("id") not in seen:
                    seen.add(item.get("id"))
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
        exclude_runtime: bool | None = None,
        include_context: bool | None = None,
    ) -> list[types.BreadcrumbListItem]:
        """Best match first, ``nn`` at most.

        :param mode: by meaning, by words, or both joined; what the server can when absent.
        :param qvec: the vector of the question, for who has made it already.
        """
        query = _selection(tag, any_tag, schema_name, context_match, exclude_runtime, include_context)
        query |= {"q": q, "nn": nn, "mode": mode, "qvec": _json_list("qvec", qvec)}
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
        retry_time: float | None = None,
    ) -> AsyncGenerator[EventItem, None]:
        """Each event once, in order, across lost connections and restarts of the server. Leave the
        loop to close it.

        :param after: the number of the last event seen. The default is from now on. 0 is everything
            that is retained.
        :param filters: a selector: ``any_tags``, ``all_tags``, ``schema_name``, ``context_match``,
            ``exclude_runtime``.
        :param agent_id: the agent whose selectors count; the caller by default.
        :param all: everything that the caller can see, whatever its selectors are.
        :param silence: after how many seconds without any message, even a ping, a connection counts as
            lost.
        :param on_reconnect: called for each lost connection, with the reason, before the next one
            is made.
        :param retry_time: how many seconds a lost connection is tried again, at least six times,
            before the stream fails. By default without limit once the stream was connected, and else
            for the client's ``retry_time``.
        """
        query: dict[str, QueryValue] = {
            "filters": None if filters is None else as_json("filters", filters).decode(),
            "agent_id": agent_id,
            "all": all,
        }
        return follow(self._transport, after, query, silence, on_reconnect, retry_time)

    async def latest_event(self) -> int:
        """The number of the newest event, 0 without events."""
        return cast(int, (await self._read("/events/latest"))["number"])

    async def create_selector(self, selector: types.Selector) -> types.SelectorSubscription:
        """From now on the agent's own streams, including open ones, have only events that match
        one of its selectors."""
        made = await self._transport.json("POST", "/subscriptions/selectors", body=selector)
        return cast(types.SelectorSubscription, made)

    async def list_selectors(self) -> list[types.SelectorSubscription]:
        return cast(list[types.SelectorSubscription], await self._read("/subscriptions/selectors"))

    async def agent_selectors(self, id: str) -> list[types.SelectorSubscription]:
        """The selectors of another agent, for curators."""
        return cast(list[types.SelectorSubscription], await self._read("/agents/{id}/selectors", {"id": id}))

    async def update_selector(self, id: str, selector: types.Selector) -> types.SelectorSubscription:
        path = "/subscriptions/selectors/{id}"
        changed = await self._transport.json("PUT", path, at={"id": id}, body=selector, again=True)
        return cast(types.SelectorSubscription, changed)

    async def delete_selector(self, id: str) -> None:
        await self._transport.remove("/subscriptions/selectors/{id}", at={"id": id})

    # Rights

    async def list_grants(self, *, breadcrumb_id: str | None = None) -> list[types.AclEntry]:
        """For a curator all of the tenant, for others those on records that they created."""
        return cast(list[types.AclEntry], await self._read("/acl", query={"breadcrumb_id": breadcrumb_id}))

    async def grant_access(self, grant: types.AclChange) -> str:
        """Opens a record to an agent or a tenant. Returns the grant's id."""
        return str((await self._transport.json("POST", "/acl/grant", body=grant, again=True))["id"])

    async def revoke_access(self, grant: types.AclChange) -> int:
        """Removes actions from the grantee. Returns how many grants changed."""
        return cast(int, (await self._transport.json("POST", "/acl/revoke", body=grant, again=True))["rows"])

    # Tools

    async def tools(
        self, *, profile: types.Profile | None = None, tool: Tags = None, tag: Tags = None
    ) -> types.Catalog:
        """The tools that the agent's profile allows, and those with a missing requirement. With
        ``tool`` or ``tag`` only those with these names or tags, and those that read large
        results."""
        query: dict[str, QueryValue] = {"profile": profile, "tool": _several(tool), "tag": _several(tag)}
        return cast(types.Catalog, await self._read("/tools", query=query))

    async def tools_for(
        self, format: models.ModelFormat, *, profile: types.Profile | None = None, tool: Tags = None, tag: Tags = None
    ) -> Any:
        """The same in the format of a model's API: for ``openai`` a list of
        :class:`rcrt.models.OpenAiTool`, for ``openai-responses`` a list of
        :class:`rcrt.models.OpenAiResponsesTool`, for ``anthropic`` a list of
        :class:`rcrt.models.AnthropicTool`, for ``mcp`` the result of ``tools/list``. The type is
        open, so that the libraries of these APIs accept it."""
        query: dict[str, QueryValue] = {
            "format": format,
            "profile": profile,
            "tool": _several(tool),
            "tag": _several(tag),
        }
        found = self._transport.parse(await self._transport.exchange("GET", "/tools", query=query, again=True))
        tools = found.get("tools") if format == "mcp" and isinstance(found, dict) else found
        if not isinstance(tools, list) or not all(isinstance(tool, dict) for tool in tools):
            raise foreign(self._transport.base, f"it has no tools in the format {format}", found)
        return found

    async def find_tools(
        self, text: str, *, limit: int | None = None, profile: types.Profile | None = None
    ) -> types.RankedCatalog:
        """The tools that fit a text, the best first, each with a score from 0 to 1. ``hints`` are
        the two services that fit best, none for a text of one or two words."""
        query: dict[str, QueryValue] = {"for": text, "limit": limit, "profile": profile}
        return cast(types.RankedCatalog, await self._read("/tools", query=query))

    async def tool(self, name: str) -> types.CatalogEntry:
        return cast(types.CatalogEntry, await self._read("/tools/{name}", {"name": name}))

    async def call(self, tool: str, input: Any = None, **options: Unpack[InvokeArguments]) -> Any:
        """Calls a tool and returns its output, or raises :class:`ToolError`. If the output is
        larger than the caller accepts, it is a :class:`rcrt.types.LargeResult` (see
        :func:`rcrt.is_large_result` and :meth:`parts`). Takes the arguments of :meth:`invoke`."""
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
        version: int | None = None,
        definition_hash: str | None = None,
        request_id: str | None = None,
        traceparent: str | None = None,
        cancel: bool = False,
        debug: bool = False,
    ) -> types.ToolResponse:
        """Calls a tool and returns its whole response, which can be a failure. Broken connections
        do not cause a second call.

        :param wait: how many seconds to wait for the response in total. After that,
            :class:`StillRunning`.
        :param idempotency_key: the same key with the same call gets the response of the first.
        :param deadline_ms: milliseconds from now until the response must exist. After that it is a
            ``Timeout``.
        :param version: the version of the tool's record that must run, as
            ``metadata["tool_version"]`` of a response.
        :param definition_hash: the definition that must run, as ``metadata["definition_hash"]`` of
            a response.
        :param cancel: cancels the call when this task is cancelled.
        :param debug: streams console lines as ``tool.log.v1``, and adds a timeline to
            ``metadata["debug"]``.
        """
        options = InvokeOptions(
            wait,
            idempotency_key,
            workspace,
            session,
            model,
            max_result_chars,
            deadline_ms,
            version,
            definition_hash,
            request_id,
            traceparent,
            cancel,
            debug,
        )
        return await invoke(self._transport, tool, {} if input is None else input, options)

    async def create_tool(
        self, spec: dict[str, Any], *, mode: str | None = None, if_version: int | None = None, **options: Any
    ) -> dict[str, Any]:
        """Creates or updates a tool. It is written if the validators and the examples find no error;
        ``status`` in the result says so. Takes the options of :meth:`invoke`."""
        return cast(dict[str, Any], await self.call("create_tool", creation(spec, mode, if_version), **options))

    async def tool_types(self, spec: dict[str, Any] | None = None) -> str:
        """TypeScript declarations. Of a tool: ``Input``, ``Output`` and ``Context``. Without one, what
        all tools share: the globals of the sandbox, and the namespace ``tools``."""
        body = {} if spec is None else {"tool_spec": spec}
        found = cast(types.ToolTypes, await self._transport.json("POST", "/tools/types", body=body, again=True))
        return found["types"]

    async def validate_tool(self, spec: dict[str, Any]) -> types.ToolValidation:
        """What the validators find in a tool. Nothing is written."""
        found = await self._transport.json("POST", "/tools/validate", body={"tool_spec": spec}, again=True)
        return cast(types.ToolValidation, found)

    async def test_tool(self, spec: dict[str, Any], *, wait: float = 300.0) -> dict[str, Any]:
        """Validates a tool and runs its examples in the sandbox. No tool is written."""
        response = await test(self._transport, spec, wait)
        if response["status"] != "success":
            raise ToolError(response)
        return cast(dict[str, Any], response.get("output"))

    async def publish_tool(
        self, name: str, *, tool_id: str | None = None, version: int | None = None
    ) -> types.PublishedTool:
        """Publishes a draft; for curators. ``version``: the version of its record that was
        reviewed."""
        body = {"tool_id": tool_id, "version": version}
        return cast(
            types.PublishedTool, await self._transport.json("POST", "/tools/{name}/publish", at={"name": name}, body=body)
        )

    @overload
    async def call_for(
        self, format: Literal["openai"], call: models.OpenAiCall, **options: Unpack[InvokeArguments]
    ) -> models.OpenAiMessage: ...

    @overload
    async def call_for(
        self, format: Literal["openai", "openai-responses"], call: models.OpenAiItemCall, **options: Unpack[InvokeArguments]
    ) -> models.OpenAiItem: ...

    @overload
    async def call_for(
        self, format: Literal["anthropic"], call: models.AnthropicCall, **options: Unpack[InvokeArguments]
    ) -> models.AnthropicBlock: ...

    @overload
    async def call_for(
        self, format: Literal["mcp"], call: models.McpCall, **options: Unpack[InvokeArguments]
    ) -> models.McpResult: ...

    @overload
    async def call_for(
        self, format: models.ModelFormat, call: models.ModelObject, **options: Unpack[InvokeArguments]
    ) -> Any: ...

    async def call_for(self, format: models.ModelFormat, call: Any, **options: Unpack[InvokeArguments]) -> Any:
        """Calls a tool as a model asked for it: one of a message's ``tool_calls`` (``openai``), a
        ``function_call`` item (``openai-responses``, or ``openai``), a ``tool_use`` block
        (``anthropic``), or the params of ``tools/call`` (``mcp``), as a dictionary or as the object
        of the API's own library. Returns the message that the model expects, also if there is no
        such tool, the tool failed or the model's arguments are invalid. After ``wait`` it raises
        :class:`StillRunning`, as :meth:`call` does; a shorter ``deadline_ms`` makes that a message
        too. Takes the options of :meth:`invoke`."""
        return await invoke_for(self._transport, format, call, InvokeOptions(**options))

    async def parts(
        self, large: types.LargeResult, **options: Unpack[InvokeArguments]
    ) -> AsyncGenerator[Any, None]:
        """The parts of a large result, in order. Those of a text are strings that form the text;
        those of JSON are documents, each with a part of the whole one and everything that encloses
        it. Takes the options of :meth:`invoke`."""
        async for part in parts(self._transport, large, InvokeOptions(**options)):
            yield part

    # Calls

    async def get_call(self, request_id: str) -> types.CallDetails:
        """The state of a request."""
        return cast(types.CallDetails, await self._read("/calls/{request_id}", {"request_id": request_id}))

    async def cancel_call(self, request_id: str) -> types.Call:
        at = {"request_id": request_id}
        return cast(types.Call, await self._transport.json("POST", "/calls/{request_id}/cancel", at=at, again=True))

    async def runners(self) -> list[types.RunnerInfo]:
        """The live runners with their slots and calls, the oldest first; for curators."""
        return cast(list[types.RunnerInfo], await self._read("/runners"))

    async def drain_runner(self, runner_id: str, drain: bool) -> types.RunnerInfo:
        """Asks a live runner to take no more calls, or to take calls again; for curators."""
        at, body = {"id": runner_id}, {"drain": drain}
        return cast(types.RunnerInfo, await self._transport.json("POST", "/runners/{id}/drain", at=at, body=body, again=True))

    # For runners

    async def claim_calls(self, wanted: types.ClaimRequest) -> list[types.Claim]:
        """Not repeated if the response is lost: those leases expire by themselves, and a second
        claim would take more calls."""
        return cast(list[types.Claim], await self._transport.json("POST", "/calls/claim", body=wanted))

    async def report_runner(self, report: types.RunnerReport) -> types.ReportReply:
        """Reports that a runner is live. Returns all live runners of the tenant."""
        return cast(types.ReportReply, await self._transport.json("POST", "/runners", body=report, again=True))

    async def start_call(self, lease: types.Lease, max_attempts: int) -> None:
        body = {"lease": lease, "max_attempts": max_attempts}
        await self._transport.json("POST", "/calls/start", body=body, again=True)

    async def heartbeat(self, leases: list[types.Lease], lease_ms: int) -> list[types.LeaseState]:
        body = {"leases": leases, "lease_ms": lease_ms}
        return cast(
            list[types.LeaseState], await self._transport.json("POST", "/calls/heartbeat", body=body, again=True)
        )

    async def complete_call(self, lease: types.Lease, response: types.NewBreadcrumb) -> str:
        """Writes the response and finishes the call. Returns the response's id."""
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
        # A new value makes a new version each time. Everything else can be repeated.
        again = not isinstance(changes, dict) or changes.get("value") is None
        return cast(
            types.SecretInfo,
            await self._transport.json("PUT", "/secrets/{id}", at={"id": id}, body=changes, again=again),
        )

    async def delete_secret(self, id: str) -> None:
        await self._transport.remove("/secrets/{id}", at={"id": id})

    async def decrypt_secret(self, id: str, reason: str, *, tool_id: str | None = None) -> str:
        """The value. The audit log records who requested it, when and why."""
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
        """The key is shown only this once."""
        return cast(types.NewAgentKey, await self._transport.json("POST", "/agents", body=agent))

    async def put_agent(self, id: str, agent: types.AgentRegistration) -> types.Registered:
        """Creates an agent with an id of the caller's choice (its key is in the response), or
        changes one."""
        return cast(types.Registered, await self._transport.json("POST", "/agents/{id}", at={"id": id}, body=agent))

    async def list_agents(self) -> list[types.AgentInfo]:
        return cast(list[types.AgentInfo], await self._read("/agents"))

    async def get_agent(self, id: str) -> types.AgentInfo:
        return cast(types.AgentInfo, await self._read("/agents/{id}", {"id": id}))

    async def rotate_agent_key(self, id: str) -> types.NewAgentKey:
        """The old key is invalid from now on; tokens stay valid. The new key is shown only this
        once."""
        return cast(types.NewAgentKey, await self._transport.json("POST", "/agents/{id}/rotate-key", at={"id": id}))

    async def delete_agent(self, id: str) -> None:
        await self._transport.remove("/agents/{id}", at={"id": id})

    # Tenants

    async def list_tenants(self) -> list[types.TenantInfo]:
        """For the operator all of them, for others their own."""
        return cast(list[types.TenantInfo], await self._read("/tenants"))

    async def get_tenant(self, id: str) -> types.TenantInfo:
        return cast(types.TenantInfo, await self._read("/tenants/{id}", {"id": id}))

    async def put_tenant(self, id: str, name: str) -> types.TenantDone:
        """Creates a tenant (its first agent's key is in the response), or renames it."""
        body = {"name": name}
        return cast(types.TenantDone, await self._transport.json("PUT", "/tenants/{id}", at={"id": id}, body=body))

    async def delete_tenant(self, id: str) -> None:
        await self._transport.remove("/tenants/{id}", at={"id": id})

    # Webhooks

    async def create_webhook(self, agent_id: str, webhook: types.NewWebhook) -> types.WebhookInfo:
        """Each event that the agent can see is posted to the URL, signed."""
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
        """The signing secret of the agent's deliveries."""
        body = {"secret": secret}
        await self._transport.json("POST", "/agents/{id}/secret", at={"id": agent_id}, body=body, again=True)

    async def list_dead_letters(
        self, *, limit: int | None = None, offset: int | None = None
    ) -> list[types.DeadLetter]:
        """Deliveries that were given up, the newest first. After the last one, pages are empty."""
        return cast(list[types.DeadLetter], await self._read("/dlq", query={"limit": limit, "offset": offset}))

    async def retry_dead_letter(self, id: str) -> None:
        await self._transport.json("POST", "/dlq/{id}/retry", at={"id": id})

    async def delete_dead_letter(self, id: str) -> None:
        await self._transport.remove("/dlq/{id}", at={"id": id})

    async def delete_dead_letters(self) -> int:
        """Deletes all of them. Returns how many there were."""
        return cast(int, (await self._transport.json("DELETE", "/dlq"))["deleted"])

    # Operations

    async def revoke_tokens(
        self, *, token: str | None = None, jti: str | None = None, agent_id: str | None = None, all: bool = False
    ) -> types.RevokedTokens:
        """Revokes tokens before they expire. Without an argument the client's own."""
        named = {"token": token, "jti": jti, "agent_id": agent_id}
        body: dict[str, Any] = {name: value for name, value in named.items() if value is not None}
        if all:
            body["all"] = True
        return cast(types.RevokedTokens, await self._transport.json("POST", "/auth/revoke", body=body))

    async def list_tokens(
        self, *, agent_id: str | None = None, before: int | None = None, limit: int | None = None
    ) -> types.TokenPage:
        """Tokens that have not expired, newest first: of all agents for a curator, else the agent's
        own. ``before`` is the ``next`` of the page before."""
        query: dict[str, QueryValue] = {"agent_id": agent_id, "before": before, "limit": limit}
        return cast(types.TokenPage, await self._read("/auth/tokens", query=query))

    async def stream_ticket(self) -> types.StreamTicket:
        """A one-time ticket for a browser's ``EventSource``, which cannot send headers."""
        return cast(types.StreamTicket, await self._transport.json("POST", "/events/ticket"))

    async def audit_log(
        self,
        *,
        action: str | None = None,
        agent_id: str | None = None,
        subject: str | None = None,
        tool_id: str | None = None,
        since: str | None = None,
        until: str | None = None,
        before: int | None = None,
        limit: int | None = None,
    ) -> types.AuditPage:
        """Changes of agents, tokens, grants, secrets and tools, and uses of secrets, newest first.
        ``before`` is the ``next`` of the page before."""
        query: dict[str, QueryValue] = {
            "action": action,
            "agent_id": agent_id,
            "subject": subject,
            "tool_id": tool_id,
            "since": since,
            "until": until,
            "before": before,
            "limit": limit,
        }
        return cast(types.AuditPage, await self._read("/audit", query=query))

    async def calls(
        self,
        *,
        state: str | None = None,
        tool: str | None = None,
        agent_id: str | None = None,
        session: str | None = None,
        status: str | None = None,
        error_code: str | None = None,
        parent: str | None = None,
        request_id: str | None = None,
        tag: str | None = None,
        text: str | None = None,
        since: str | None = None,
        until: str | None = None,
        before: str | None = None,
        limit: int | None = None,
    ) -> types.CallPage:
        """Calls, newest first; ``before`` is the ``next`` of the page before. A page can be empty
        and have a ``next``."""
        query: dict[str, QueryValue] = {
            "state": state,
            "tool": tool,
            "agent_id": agent_id,
            "session": session,
            "status": status,
            "error_code": error_code,
            "parent": parent,
            "request_id": request_id,
            "tag": tag,
            "text": text,
            "since": since,
            "until": until,
            "before": before,
            "limit": limit,
        }
        return cast(types.CallPage, await self._read("/calls", query=query))

    async def call_stats(self, *, tool: str | None = None, window: str | None = None) -> types.CallStats:
        """Counts and durations of the calls that finished in a window such as ``15m`` or ``7d``."""
        query: dict[str, QueryValue] = {"tool": tool, "window": window}
        return cast(types.CallStats, await self._read("/calls/stats", query=query))

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
        """The requests of tools and webhooks to other servers, newest first; ``before`` is the
        ``next`` of the page before."""
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
        """The state of the deletion of expired records."""
        return cast(types.HygieneReport, await self._read("/hygiene/stats"))

    async def run_hygiene(self) -> types.HygieneRunReport:
        """Deletes expired records now."""
        return cast(types.HygieneRunReport, await self._transport.json("POST", "/hygiene/run", again=True))

    async def health(self) -> types.Health:
        """Checks the server and its database. Raises :class:`ProblemError` ``unavailable`` if
        they are unhealthy."""
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
    exclude_runtime: bool | None,
    include_context: bool | None,
) -> dict[str, QueryValue]:
    return {
        "tag": _several(tag),
        "any_tag": _several(any_tag),
        "schema_name": schema_name,
        "context_match": _json_list("context_match", context_match),
        "exclude_runtime": exclude_runtime,
        "include_context": include_context,
    }


def _several(tags: Tags) -> list[str] | None:
    return [tags] if isinstance(tags, str) else _list("tags", tags)


def _json_list(name: str, values: Iterable[object] | None) -> str | None:
    listed = _list(name, values)
    return None if listed is None else as_json(name, listed).decode()


def _list(name: str, values: Iterable[T] | None) -> list[T] | None:
    if values is not None and not isinstance(values, Iterable):
        raise invalid_argument(f"{name} must be a list; it is {values!r}")
    return None if values is None else list(values)
