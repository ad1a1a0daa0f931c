"""The shapes on the wire, by the names that the OpenAPI document gives them. Written by generate.py."""

from __future__ import annotations

from typing import Any, Literal, TypedDict, Union

A2aObject = dict[str, Any]
"""An object as the specification of A2A 1.0 describes it."""
Action = Literal["read_context", "read_full", "update", "delete", "subscribe"]
"""What a grant permits."""
CallState = Literal["queued", "claimed", "running", "finished"]
CatalogEntry = Union["Waiting", "Registration"]
"""A tool that can be called, or (with `missing_requirements`) one that cannot be called yet."""
EgressOutcome = Literal["answered", "refused", "failed"]
"""The outcome of a request through the gate."""
ErrorCode = Literal["ToolNotFound", "InvalidArguments", "PermissionDenied", "Timeout", "ResourceExhausted", "ExecutionFailed", "InvalidOutput", "Cancelled"]
"""Why a call failed."""
EventNumber = int
"""An event's number in its tenant's order. Numbers grow but are not dense. A subscriber that names the last number it
saw receives every later event once, in order.
"""
InvocationInFormat = Union["Invocation", "OpenAiToolCall", "OpenAiFunctionCall", "AnthropicToolUse", "McpToolCall"]
"""In the format rcrt; openai; openai-responses; anthropic; or mcp."""
LargeResultKind = Literal["text", "json"]
"""How the parts form the whole result."""
LeaseStatus = Literal["held", "cancel_requested", "lost"]
MatchOp = Literal["eq", "ne", "gt", "gte", "lt", "lte", "contains", "contains_any", "exists"]
Profile = Literal["main", "subagent", "scheduled", "a2asynthesis"]
"""The kind of agent that a token is for."""
Profiles = list["Profile"]
"""The profiles of a request: its author's, and those of the calls that led to it. A tool can be called only if each of
them allows it.
"""
PublishRule = Literal["examples", "curator", "anyone"]
"""What publishes the tools that agents without the role curator make in a tenant. What a curator writes is published
as it is.
"""
Release = Union[Literal["unstarted"], dict[str, Any]]
"""How a runner returns a call to the queue."""
ResponseInFormat = Union["ToolResponse", "OpenAiToolMessage", "OpenAiFunctionOutput", "AnthropicToolResult", "McpToolResult"]
"""In the format rcrt; openai; openai-responses; anthropic; or mcp."""
ResponseStatus = Literal["success", "error"]
Role = Literal["curator", "emitter", "subscriber", "runner", "caller"]
"""Which HTTP routes an agent can use. An agent can have several roles."""
Sensitivity = Literal["low", "pii", "secret"]
ServiceKind = Literal["a2a", "mcp", "family"]
"""What kind of service it is."""
Tag = str
"""A tag, as the OpenAPI document describes it. In Rust it is a string."""
ToolInFormat = Union["CatalogEntry", dict[str, Any]]
"""In the format rcrt, openai, openai-responses, anthropic or mcp."""
ToolList = Union["Catalog", list[dict[str, Any]], dict[str, Any], "RankedCatalog"]
"""In the format rcrt, openai, openai-responses, anthropic or mcp. With `for`, ranked."""
ToolSource = str
"""What runs a tool: native, sandbox, rest, mcp:<server> or the name of another kind of executor."""
TtlType = Literal["never", "datetime", "duration", "usage", "hybrid"]
"""When a record expires: never; at the time `ttl`; `ttl_config.duration` after the write; after its last permitted
read (`ttl_config.max_reads`); or by time or reads, whichever comes first (`hybrid`).
"""
Visibility = Literal["public", "team", "private"]
WebhookState = Literal["active", "paused"]

class Accepted(TypedDict):
    """The request is written, and its response will follow."""
    cancel: str
    """`POST` to this path cancels the call. With `--public-url` it is the whole URL."""
    request: str
    """The request's record."""
    request_id: str
    """The response will have the tag `request:<request_id>`."""


class _AclChange(TypedDict):
    breadcrumb_id: str


class AclChange(_AclChange, total=False):
    """Actions to grant or revoke. Names exactly one grantee, and either `action` or `actions`."""
    action: Union[Action, None]
    actions: list[Action]
    """Several actions."""
    grantee_agent_id: Union[str, None]
    """An agent, of this tenant or another."""
    grantee_owner_id: Union[str, None]
    """A tenant: all of its agents."""


class _AclEntry(TypedDict):
    actions: list[Action]
    breadcrumb_id: str
    created_at: str
    id: str


class AclEntry(_AclEntry, total=False):
    """A grant on one record to an agent of any tenant, or to all agents of a tenant. Exactly one of the two grantees
    is set.
    """
    grantee_agent_id: Union[str, None]
    grantee_owner_id: Union[str, None]


class _AgentInfo(TypedDict):
    created_at: str
    id: str
    name: str
    owner_id: str
    roles: list[Role]


class AgentInfo(_AgentInfo, total=False):
    profile: Profile
    """Which tools the agent can call."""
    tools: Union[AllowedTools, None]


class _AgentRegistration(TypedDict):
    roles: list[Role]
    """Replaces all roles of the agent."""


class AgentRegistration(_AgentRegistration, total=False):
    """Creates an agent with a chosen id, or changes it if it exists."""
    name: Union[str, None]
    """Unique in its tenant; 1 to 200 characters. When absent, an existing agent keeps its name, and a new agent's name
    is its id.
    """
    profile: Union[Profile, None]
    tools: Union[AllowedTools, None]


class AllowedTools(TypedDict, total=False):
    """A tool is allowed if its name, its source or one of its record's tags is listed."""
    names: list[str]
    sources: list[str]
    """`native`, `sandbox`, `rest`, `mcp:<server>`, or `mcp` for every MCP server."""
    tags: list[str]
    """Tags of the tool's record. Every agent that can change the record can set them."""


class Annotations(TypedDict, total=False):
    """The hints of the Model Context Protocol (its `ToolAnnotations`, revision 2025-06-18), with its defaults: without
    hints, a tool is assumed to make destructive changes in the open world. The runtime does not enforce them.
    """
    destructive: bool
    """It can destroy what it changes. Has no meaning for a read-only tool."""
    idempotent: bool
    """Repeating the same call changes nothing further."""
    open_world: bool
    """It interacts with systems outside of this installation."""
    read_only: bool
    """It changes nothing."""
    title: Union[str, None]
    """A title for people."""


class AnthropicToolResult(TypedDict):
    """A block of the next user message."""
    content: str
    is_error: bool
    tool_use_id: str
    type: Literal["tool_result"]


class _AnthropicToolUse(TypedDict):
    id: str
    name: str


class AnthropicToolUse(_AnthropicToolUse, total=False):
    """A `tool_use` block of an assistant's message."""
    input: Any
    """The tool's input; `{}` when absent."""
    type: Literal["tool_use"]


class _AuditEntry(TypedDict):
    action: str
    """For example `agent.changed`, `acl.granted`, `secret.decrypted`, `tool.created`."""
    at: str
    id: int
    """Later entries have larger ids."""
    subject: str
    """The id of what was changed or used: an agent, a token, a secret, a record."""
    subject_name: str
    """Its name at that time. For a token, the id of its agent."""


class AuditEntry(_AuditEntry, total=False):
    """One entry of a tenant's audit log. It was written in the transaction of the action."""
    agent_id: Union[str, None]
    """The agent that did it. `null`: the operator, or the store itself."""
    reason: Union[str, None]
    """What changed, or the reason that the caller gave."""
    tool_id: Union[str, None]
    """The tool for which it was done, or whose use of a secret was granted or revoked."""


class _AuditPage(TypedDict):
    entries: list[AuditEntry]
    """The newest first."""


class AuditPage(_AuditPage, total=False):
    """A page of the audit log."""
    next: Union[int, None]
    """The value of `before` for the next page; absent on the last one."""


class _Breadcrumb(TypedDict):
    checksum: str
    """SHA-256 of the context's JSON text, in hex."""
    context: dict[str, Any]
    created_at: str
    id: str
    owner_id: str
    """The tenant."""
    sensitivity: Sensitivity
    size_bytes: int
    """Bytes of the context's JSON text."""
    tags: list[str]
    title: str
    updated_at: str
    version: int
    """Starts at 1 and grows by one with each change."""
    visibility: Visibility


class Breadcrumb(_Breadcrumb, total=False):
    """A complete record (the *full* view)."""
    created_by: Union[str, None]
    """The agent that wrote the first version."""
    description: Union[str, None]
    llm_hints: dict[str, Any]
    read_count: Union[int, None]
    """How often the record was read, including this read. Only for `ttl_type` usage and hybrid."""
    reads_left: Union[int, None]
    """How many reads are left. The record expires with the last one. Only for `ttl_type` usage and hybrid."""
    schema_name: Union[str, None]
    semantic_version: Union[str, None]
    ttl: Union[str, None]
    ttl_config: dict[str, Any]
    ttl_type: Union[TtlType, None]
    updated_by: Union[str, None]
    """The agent that wrote this version."""
    warnings: list[Violation]
    """In the result of a write: warnings from the definition of the record's schema name, and the fields of a tool
    that are ignored.
    """


class BreadcrumbChanges(TypedDict, total=False):
    """The input to change a record. An absent field keeps its value. The context is replaced as a whole. Unknown
    fields are refused.
    """
    context: dict[str, Any]
    description: Union[str, None]
    llm_hints: dict[str, Any]
    schema_name: Union[str, None]
    semantic_version: Union[str, None]
    sensitivity: Union[Sensitivity, None]
    tags: Union[list[Tag], None]
    title: Union[str, None]
    ttl: Union[str, None]
    ttl_config: dict[str, Any]
    ttl_type: Union[TtlType, None]
    visibility: Union[Visibility, None]


class _BreadcrumbListItem(TypedDict):
    id: str
    tags: list[str]
    title: str
    updated_at: str
    version: int


class BreadcrumbListItem(_BreadcrumbListItem, total=False):
    """One row of a list or a search."""
    context: dict[str, Any]
    """Present when the caller asked for it (`include_context`)."""
    owner_id: Union[str, None]
    """The tenant that shares the record, when it is not the caller's."""
    redacted: bool
    """The record's `sensitivity` is `secret`, so the requested context is empty here. Agents with the right to read
    the record get it by id.
    """
    schema_name: Union[str, None]
    score: Union[float, None]
    """In a search: how well the record matches. Larger is better. Compare scores within one result only."""


class _BreadcrumbVersion(TypedDict):
    checksum: str
    context: dict[str, Any]
    tags: list[str]
    title: str
    updated_at: str
    version: int


class BreadcrumbVersion(_BreadcrumbVersion, total=False):
    """One version of a record in its history."""
    schema_name: Union[str, None]
    updated_by: Union[str, None]


class _BreadcrumbView(TypedDict):
    checksum: str
    context: dict[str, Any]
    id: str
    tags: list[str]
    title: str
    updated_at: str
    version: int


class BreadcrumbView(_BreadcrumbView, total=False):
    """The short view: a record without owner, audit and TTL fields."""
    description: Union[str, None]
    llm_hints: dict[str, Any]
    schema_name: Union[str, None]
    semantic_version: Union[str, None]


class _Call(TypedDict):
    attempt: int
    """Attempts that were started."""
    cancel_requested: bool
    max_attempts: int
    queued_at: str
    request: str
    """The request's record."""
    state: CallState
    tool: str


class Call(_Call, total=False):
    """The state of a request's call."""
    response: Union[str, None]
    """The response record, once the call is finished."""


class _CallAttempt(TypedDict):
    attempt: int
    """From 1."""


class CallAttempt(_CallAttempt, total=False):
    """One attempt to run a call."""
    ended_at: Union[str, None]
    outcome: Union[str, None]
    """`success`, `error`, `retry` (it failed and was tried again) or `runner_lost`; absent while it runs."""
    runner_id: Union[str, None]
    started_at: Union[str, None]


class CallInterval(TypedDict):
    """The calls that finished in one interval."""
    calls: int
    duration_ms: Percentiles
    """As in [`ToolStats::duration_ms`]."""
    failed: int
    start: str


class _CallPage(TypedDict):
    calls: list[CallSummary]
    """The newest first. A page can have fewer calls than the limit, or none, and still have a `next`: one page
    examines a bounded number of calls.
    """


class CallPage(_CallPage, total=False):
    """A page of calls."""
    next: Union[str, None]
    """The value of `before` for the next page; absent on the last one."""


class _CallStage(TypedDict):
    name: str
    """`queue`, `claim`, `load`, `run` or `write`."""
    started_at: str


class CallStage(_CallStage, total=False):
    """A part of a call's time."""
    duration_ms: Union[float, None]
    ended_at: Union[str, None]
    """Absent while the stage lasts."""


class CallStats(TypedDict):
    """Counts and durations of the calls that finished in a window."""
    all: ToolStats
    interval_seconds: int
    """The length of an interval: 60 for windows up to three hours, otherwise 3600."""
    intervals: list[CallInterval]
    """The intervals in which calls finished, oldest first."""
    since: str
    """The beginning of the window: that of its first interval."""
    tools: list[ToolStats]
    """By tool, the most calls first. Calls that did not run, of tools that do not exist, are `(unknown)`."""
    until: str


class Catalog(TypedDict):
    """All tools of a tenant, sorted by name, without duplicate names."""
    tools: list[Registration]
    waiting: list[Waiting]


class _Claim(TypedDict):
    attempt: int
    """The number of this attempt, from 1."""
    lease: Lease
    queued_at: str
    request: Breadcrumb


class Claim(_Claim, total=False):
    allowed_tools: Union[AllowedTools, None]
    profiles: Profiles
    """The profiles of the request's author and of the calls that led to it, as of when the request was written."""
    ready_at: Union[str, None]
    """When this attempt became claimable. A retry is not claimable at once."""
    time_left_ms: Union[int, None]
    """Milliseconds from the claim until the request's deadline, by the database's clock."""


class _ClaimRequest(TypedDict):
    lease_ms: int
    """How long a lease lasts without a heartbeat, in milliseconds, 1,000 to 600,000."""
    limit: int
    """The maximum number of calls, 1 to 100. Awaited calls come first, then the oldest."""
    runner_id: str
    """Identifies the runner process."""


class ClaimRequest(_ClaimRequest, total=False):
    """What a runner sends to claim calls when it has free slots."""
    awaited_only: list[str]
    """Tools of which this runner takes only awaited calls now."""
    except_tools: list[str]
    """Tools for which this runner has no free slot now."""
    only_tools: list[str]
    """The only tools whose calls this runner takes. Empty: all."""


class Complete(TypedDict):
    lease: Lease
    response: NewBreadcrumb
    """The `tool.response.v1` record."""


class Completed(TypedDict):
    """The id of the response's record."""
    id: str


class _ContextMatch(TypedDict):
    op: MatchOp
    path: str
    """`$.a.b`, `$.items[0].name`."""


class ContextMatch(_ContextMatch, total=False):
    """One condition on the context."""
    value: Any
    """The operand. `exists` takes `true` (the default) or `false`."""


class _Created(TypedDict):
    id: str
    version: int


class Created(_Created, total=False):
    """The result of a create."""
    replayed: bool
    """True when this is the result of an earlier create with the same `Idempotency-Key` and body."""
    warnings: list[Violation]
    """Warnings from the definition of the record's schema name, and the fields of a tool that are ignored. The record
    was written.
    """


class DeadLetter(TypedDict):
    """A delivery that was given up."""
    agent_id: str
    attempts: int
    created_at: str
    """When it was given up."""
    id: str
    """The `webhook-id` of its attempts, also of those after a retry."""
    last_error: str
    """The error of the last attempt."""
    payload: dict[str, Any]
    """The event that was posted."""
    url: str
    webhook_id: str


class _Decryption(TypedDict):
    reason: str
    """Why the value is needed, for the audit log; 1 to 1000 characters."""


class Decryption(_Decryption, total=False):
    tool_id: Union[str, None]
    """The record of the tool that will use it; the secret must be granted to it. Only a curator can omit it."""


class DeletedCount(TypedDict):
    """How many were deleted."""
    deleted: int
    ok: bool


class _Deprecation(TypedDict):
    since: str


class Deprecation(_Deprecation, total=False):
    """Since when a tool should not be used, what to use instead, and until when it can be called. Days are those of
    UTC.
    """
    remove_after: Union[str, None]
    """The last day on which it can be called."""
    use: Union[str, None]
    """The name of the tool that replaces it."""


class Done(TypedDict):
    """The request succeeded. (A body instead of `204`, because RCRT's clients parse every response as JSON.)"""
    ok: bool


class _EgressPage(TypedDict):
    entries: list[EgressEntry]
    """The newest first."""


class EgressPage(_EgressPage, total=False):
    """A page of the egress log."""
    next: Union[int, None]
    """The value of `before` for the next page; absent on the last one."""


class _EgressRecord(TypedDict):
    at: str
    """When the request started."""
    bytes_in: int
    """Bytes read of the response's body, as received."""
    bytes_out: int
    """Bytes of the request's body."""
    duration_ms: int
    """Time until the response's body was read or abandoned, in milliseconds."""
    host: str
    """The host that was checked: a lower-case name or an address."""
    method: str
    """`GET` and so on; `_OTHER` for non-standard methods."""
    outcome: EgressOutcome
    port: int
    tool: str
    """The tool's name; `webhooks` for deliveries to webhooks."""


class EgressRecord(_EgressRecord, total=False):
    """One request through the gate. Each followed redirect is a separate request."""
    agent_id: Union[str, None]
    """The agent that asked for the call."""
    call: Union[str, None]
    """The `tool.request.v1` record of the call. For a webhook delivery, the delivery's id."""
    reason: Union[str, None]
    """Why it was refused."""
    status: Union[int, None]
    """The HTTP status of the response."""
    tool_id: Union[str, None]
    """The tool's record."""


class EgressRecords(TypedDict):
    entries: list[EgressRecord]
    """At most 1000."""


class _FoundService(TypedDict):
    id: str
    """The name of the agent, of the MCP server or of the family."""
    relevance_score: float
    """From 0 to 1: how well the service fits. Scores of different questions can be compared."""
    summary: str
    """What it is for."""
    type: ServiceKind


class FoundService(_FoundService, total=False):
    """A service that fits a question."""
    top_skills: Union[list[str], None]
    """Of an agent: the ids of the skills that fit best, at most three."""
    top_tools: Union[list[str], None]
    """Of others: the names of the tools that fit best, at most three."""


class GivenToken(TypedDict):
    agent_id: str
    exp: int
    """When the token expires, in seconds since 1970."""
    expires_in: int
    """Seconds until then, for callers whose clock differs from the server's."""
    id: str
    """The token's id, by which it can be revoked: its claim `jti`."""
    owner_id: str
    profile: Profile
    roles: list[Role]
    token: str


class Granted(TypedDict):
    """The grant."""
    id: str


class GrantedTool(TypedDict):
    """A tool that can use a secret. The grant belongs to the tool's record and ends with it: another record that takes
    the name has no grant.
    """
    granted_at: str
    granted_by: str
    """The agent that made the grant."""
    tool: str
    """The current name of the record."""
    tool_id: str
    """The tool's record."""
    tool_version: int
    """The record's version when the grant was made. An older version that runs does not receive the secret. From the
    grant on only curators can change the record, so a curator has approved all code that uses the secret.
    """


class Health(TypedDict):
    status: str
    """`ok`; anything else is a problem document with status 503."""
    version: str
    """The server's version."""


class Heartbeat(TypedDict):
    lease_ms: int
    """The new duration of each lease in milliseconds, counted from now, 1,000 to 600,000."""
    leases: list[Lease]
    """At most 1,000."""


class HygieneRun(TypedDict):
    """The result of one run."""
    duration_ms: int
    expired_breadcrumbs_purged: int
    """Other expired records."""
    health_checks_purged: int
    """Expired requests that were tagged `health:check`."""
    is_complete: bool
    """False if one run could not delete everything. The next run continues."""


class _HygieneStats(TypedDict):
    last_run_duration_ms: int
    last_run_errors: int
    """1 if the last run failed."""
    last_run_purged: int
    runs_completed: int
    """Runs that deleted something, and runs that were requested."""
    total_breadcrumbs_purged: int
    waiting: int
    """Expired records that are not deleted yet. Readers do not see them."""


class HygieneStats(_HygieneStats, total=False):
    """Totals of the deletion of a tenant's expired records, over all servers and restarts."""
    last_run_at: Union[str, None]
    """When the last run started and ended, and what it deleted."""


class Invocation(TypedDict, total=False):
    deadline_ms: Union[int, None]
    """Milliseconds from now until the request gets the response `Timeout`."""
    debug: Union[bool, None]
    """Streams the console lines as `tool.log.v1` records while the tool runs, and adds `debug` to the response's
    metadata: a timeline, and what the call used.
    """
    definition_hash: Union[str, None]
    """The definition that must run, as `metadata.definition_hash` of a response."""
    input: Any
    """The input of the tool; `{}` when absent."""
    max_result_chars: Union[int, None]
    """How many characters of a result the caller accepts at once."""
    model: Union[str, None]
    """The model that will read the response. It decides how long a result can be."""
    requestId: Union[str, None]
    """The caller's own id for the request; the response has the tag `request:<requestId>`."""
    session: Union[str, None]
    """The conversation. A large result is stored in its working memory, in parts."""
    version: Union[int, None]
    """The version of the tool's record that must run, as `metadata.tool_version` of a response."""
    workspace: Union[str, None]
    """The workspace of the request and its response: the tag `workspace:…`, or the name after the colon."""


class _JsonRpcMessage(TypedDict):
    error: dict[str, Any]
    jsonrpc: str
    """Always `2.0`."""
    params: dict[str, Any]
    result: dict[str, Any]


class JsonRpcMessage(_JsonRpcMessage, total=False):
    """A JSON-RPC 2.0 message: a request, a notification, or the response to a request."""
    id: Any
    """Of a request, and of its response: a string or an integer."""
    method: Union[str, None]


class _LargeResult(TypedDict):
    characters: int
    """The size of the whole result: of its text, or of its JSON without spaces."""
    kind: LargeResultKind
    """What the whole result is."""
    parts: int
    """The number of parts; 0 if the result is cut."""
    text: str
    """What a model reads in place of the result: a markdown table of the parts and how to read them, or the start of a
    result that is cut. At most as long as the caller accepts.
    """
    truncated: bool
    """The result is cut; its rest is lost."""
    type: str
    """Always `large_result`."""


class LargeResult(_LargeResult, total=False):
    """The `output` of a response whose result is larger than the caller accepts. `metadata` of the response then has
    `large_result`. The parts are in the working memory of the request's session: the tool `get_from_working_memory`
    returns each by its key. Without a session the result is cut, and there are no parts.
    """
    expires_at: Union[str, None]
    """Until when the parts are stored (RFC 3339)."""
    key: Union[str, None]
    """The key of the whole result, for the tools `result_search`, `result_slice` and `result_jsonpath`."""
    part_prefix: Union[str, None]
    """With the number of a part, from 1 to `parts`, at its end: the key of that part."""


class Latest(TypedDict):
    """The number of the newest event."""
    number: EventNumber


class Lease(TypedDict):
    """The right to run one call until the lease ends. A store refuses writes with an old fence."""
    fence: int
    """The fencing token. It grows with each claim of this call."""
    request: str
    """The request's record."""


class LeaseState(TypedDict):
    """The result of a heartbeat for one lease."""
    lease: Lease
    status: LeaseStatus


class _LiveRunner(TypedDict):
    host: str
    lease_left_ms: int
    """How long it counts as live without another report, in milliseconds."""
    runner_id: str


class LiveRunner(_LiveRunner, total=False):
    """A runner of the tenant whose lease has not ended."""
    working_folder: Union[str, None]


class _McpToolCall(TypedDict):
    name: str


class McpToolCall(_McpToolCall, total=False):
    """The params of a `tools/call`."""
    arguments: Any
    """The tool's input; `{}` when absent."""


class _McpToolResult(TypedDict):
    content: list[dict[str, Any]]
    isError: bool


class McpToolResult(_McpToolResult, total=False):
    """The result of the `tools/call`."""
    structuredContent: dict[str, Any]
    """The output of the tool, if it is an object."""


class _NewAgent(TypedDict):
    name: str
    """Unique in its tenant; 1 to 200 characters."""
    roles: list[Role]


class NewAgent(_NewAgent, total=False):
    profile: Profile
    """`main` when absent."""
    tools: Union[AllowedTools, None]


class _NewBreadcrumb(TypedDict):
    title: str


class NewBreadcrumb(_NewBreadcrumb, total=False):
    """The input to create a record. Unknown fields are refused."""
    context: dict[str, Any]
    description: Union[str, None]
    llm_hints: dict[str, Any]
    schema_name: Union[str, None]
    semantic_version: Union[str, None]
    sensitivity: Sensitivity
    tags: list[Tag]
    ttl: Union[str, None]
    """When the record expires. For `ttl_type` datetime (or no `ttl_type`) and hybrid."""
    ttl_config: dict[str, Any]
    """`duration`: seconds above 0, or a string such as `"2h"` (for `ttl_type` duration and hybrid). `max_reads`: how
    often the record can be read by id (for usage and hybrid).
    """
    ttl_type: Union[TtlType, None]
    visibility: Visibility


class NewGrant(TypedDict, total=False):
    """The tool, by its record or by its name."""
    tool: Union[str, None]
    """The tool's name, if exactly one record has it."""
    tool_id: Union[str, None]
    """The tool's record."""


class _NewSecret(TypedDict):
    name: str
    """A letter or `_`, followed by letters, digits and `_`; at most 200 characters; unique in its tenant. A server
    with `--compat rcrt` also accepts spaces and any of `.:/@+()-`, and a digit in front; a tool's
    `required_secrets` cannot name such a secret.
    """
    value: str
    """1 to 65,536 bytes; at least 8 if tools cannot read it."""


class NewSecret(_NewSecret, total=False):
    hosts: list[str]
    """Where the value can be sent: `api.example.com`, `api.example.com:8443`, `*.example.com`; at most 50."""
    readable: bool
    """Whether a tool's code receives the value itself. By default it receives a handle."""
    scope_id: Union[str, None]
    """The id that belongs to `scope_type`."""
    scope_type: Union[str, None]
    """A label without effect on access: RCRT's clients say here what the secret is for. At most 100 characters."""


class _NewWebhook(TypedDict):
    url: str
    """An absolute http or https URL without a user name or password; at most 2048 bytes. Each delivery checks that it
    leads to the public internet.
    """


class NewWebhook(_NewWebhook, total=False):
    description: Union[str, None]
    """For people; at most 1000 characters."""
    selector: Union[Selector, None]


class _OpenAiFunctionCall(TypedDict):
    call_id: str
    name: str


class OpenAiFunctionCall(_OpenAiFunctionCall, total=False):
    """A `function_call` item of the Responses API."""
    arguments: Union[str, dict[str, Any], None]
    """The tool's input as JSON text; `{}` when absent or empty."""
    type: Literal["function_call"]


class OpenAiFunctionOutput(TypedDict):
    """The next item. The text of a failure begins with its code."""
    call_id: str
    output: str
    type: Literal["function_call_output"]


class _OpenAiToolCall(TypedDict):
    function: dict[str, Any]
    id: str


class OpenAiToolCall(_OpenAiToolCall, total=False):
    """One of a message's `tool_calls`."""
    type: Literal["function"]


class OpenAiToolMessage(TypedDict):
    """The next message. The text of a failure begins with its code."""
    content: str
    role: Literal["tool"]
    tool_call_id: str


class Percentiles(TypedDict):
    """Percentiles in milliseconds. All are 0 if there is no call."""
    p50: float
    p95: float
    p99: float


class _Problem(TypedDict):
    code: str
    detail: str
    """What is wrong with this request, and what is expected."""
    status: int
    """The HTTP status."""
    title: str
    type: str
    """The URL that explains the code: `/docs#problem-<code>`."""


class Problem(_Problem, total=False):
    """An RFC 9457 problem document. `code` is the stable name of the problem. The members after it exist only for some
    codes.
    """
    actual: Union[int, None]
    """`version_conflict`: the current version of the record."""
    column: Union[int, None]
    expected: Union[int, None]
    """`version_conflict`: the version that the caller named."""
    id: Union[str, None]
    """`not_found`: its id. `lease_lost`: the request's."""
    limit: Union[int, None]
    """`too_large`: the most bytes that are accepted. `quota_exceeded`, `queue_full`: the limit."""
    line: Union[int, None]
    """`malformed_json`: the position of the error, counted from 1."""
    nearest: list[str]
    """`tool_not_found`: similar names of tools."""
    quota: Union[str, None]
    """`quota_exceeded`: which quota: `records`, `bytes`, `tools`, `tool_bytes` or `tool_creations`; or `descendants`,
    for a request that a call writes.
    """
    used: Union[int, None]
    """`quota_exceeded`: how much of it is used."""
    violations: list[Violation]
    """`invalid`: all that is wrong with the input."""
    what: Union[str, None]
    """`not_found`: the kind of the thing that was not found."""


class PublishedTool(TypedDict):
    """A draft that is now offered to everybody."""
    name: str
    record_version: int
    """The version of the record that is offered."""
    tool_id: str


class Publishing(TypedDict, total=False):
    tool_id: Union[str, None]
    """The record of the draft. Required if several agents have a draft with this name."""
    version: Union[int, None]
    """The version of the record that was reviewed; the newest when absent."""


class PurgeReport(TypedDict):
    """The result of a purge, as RCRT reports it."""
    expired_purged: int
    health_checks_purged: int
    purged: int
    ttl_purged: int


class RankedCatalog(TypedDict):
    """The tools that fit a text, the best first."""
    hints: list[FoundService]
    """The two services that fit the text best. Empty for a text of one or two words, which asks for nothing."""
    tools: list[RankedTool]
    waiting: list[Any]
    """Always empty: a tool with missing requirements is not found."""


class _Registered(TypedDict):
    created: bool
    """Whether the agent is new."""
    ok: bool


class Registered(_Registered, total=False):
    """The result of a registration."""
    agent_key: Union[str, None]
    """The key of a new agent, shown only once."""


class _Registration(TypedDict):
    name: str
    parameters: dict[str, Any]
    """JSON Schema 2020-12 of the input. `true` accepts everything."""
    source: ToolSource
    tool_id: str
    """The record that defines the tool."""
    tool_version: int
    """The version of that record that runs."""


class Registration(_Registration, total=False):
    """A tool that can be called, of any source."""
    annotations: Annotations
    deprecated: Union[Deprecation, None]
    description: str
    """For people and models that choose a tool."""
    output_schema: dict[str, Any]
    """JSON Schema 2020-12 of the output, if its author described it."""
    tags: list[str]
    """The tags of the record that defines the tool."""


class ReleaseRequest(TypedDict):
    lease: Lease
    release: Release


class _ReportReply(TypedDict):
    runners: list[LiveRunner]
    """All live runners of the tenant, with the one that reports."""
    secrets_revision: str
    """Changes with every change of a secret or a grant."""


class ReportReply(_ReportReply, total=False):
    """The reply to a [`RunnerReport`]."""
    drain: bool
    """An operator wants the runner that reports to take no more calls."""


class Requeued(TypedDict):
    """The delivery is queued again."""
    requeued: bool


class RevokeTokens(TypedDict, total=False):
    """Which tokens: `token` or `jti` for one, `all` for all tokens of an agent so far. With none of them, the token of
    this request.
    """
    agent_id: Union[str, None]
    """The agent of `jti` or `all`. When absent, the agent of the listed token, or for `all` the caller. Only curators
    can revoke tokens of other agents.
    """
    all: bool
    """`true`: all tokens of the agent that were issued before now."""
    jti: Union[str, None]
    """The id of the token, as `POST /auth/token` and `GET /auth/tokens` return it: its claim `jti`. A token that is
    not listed is only revoked if `agent_id` names its agent.
    """
    token: Union[str, None]
    """The token itself."""


class Revoked(TypedDict):
    """The number of grants that were changed: zero or one."""
    rows: int


class _RevokedTokens(TypedDict):
    agent_id: str
    ok: bool


class RevokedTokens(_RevokedTokens, total=False):
    """What was revoked."""
    issued_before: Union[str, None]
    """All tokens that were issued before this time."""
    jti: Union[str, None]
    """The one token."""
    unlisted: bool
    """`true`: no token with the id `jti` is listed. It is refused should it appear."""


class RunnerDrain(TypedDict):
    """What an operator wants of a runner."""
    drain: bool
    """True: it takes no more calls and finishes those that it has. False: it takes calls again."""


class _RunnerInfo(TypedDict):
    allowed_private_hosts: list[str]
    """The private hosts that its tools can reach, as `[TOOL=]HOST[:PORT]`."""
    claimed: int
    """Calls that it has claimed and not started."""
    drain_requested: bool
    """An operator wants it to drain. It follows with its next report."""
    draining: bool
    """It takes no more calls and finishes those that it has."""
    host: str
    lease_left_ms: int
    """How long it counts as live without another report, in milliseconds."""
    reported_at: str
    """When its last report was stored. A report without news is stored only when a third of the lease has passed."""
    runner_id: str
    running: int
    """Calls that it runs."""
    slots: RunnerSlots
    """By its last report. Calls whose requests are not written yet count too."""
    started_at: str
    """By the clock of its machine."""
    version: str
    """The version of its program."""


class RunnerInfo(_RunnerInfo, total=False):
    """A runner of the tenant whose lease has not ended, with its load."""
    working_folder: Union[str, None]
    """The folder that its file tools use."""


class _RunnerReport(TypedDict):
    applied: EventNumber
    """The runner uses every change of a tool up to this event."""
    draining: bool
    """It takes no more calls and finishes those that it has."""
    host: str
    """The name of its machine."""
    lease_ms: int
    """How long the runner counts as live without another report, in milliseconds: 1,000 to 600,000. 0 when it stops."""
    runner_id: str
    slots: RunnerSlots
    started_at: str
    version: str
    """The version of its program."""


class RunnerReport(_RunnerReport, total=False):
    """That a runner is live, what it does, and how far it has followed the tenant's tools."""
    allowed_private_hosts: list[str]
    """The private hosts that its tools can reach, as `[TOOL=]HOST[:PORT]`. At most 1,000."""
    working_folder: Union[str, None]
    """The folder that its file tools use."""


class RunnerSlots(TypedDict):
    """The slots in which a runner's calls run."""
    waiting: SlotCount
    """For calls that only wait, of tools of the type `http`."""
    worker: SlotCount
    """For calls of code and of native tools."""


class SecretChanges(TypedDict, total=False):
    """The changes to a secret. Absent fields keep their values, and grants remain."""
    hosts: Union[list[str], None]
    """Replaces all hosts. `[]` binds the secret to none."""
    readable: Union[bool, None]
    tool_id: Union[str, None]
    """The record of the tool that renews the value; the secret must be granted to it. Only a curator can omit it. With
    it, only the value can change.
    """
    value: Union[str, None]
    """Replaces the value."""
    version: Union[int, None]
    """The version that is changed. If the secret has another one, nothing changes."""


class _SecretInfo(TypedDict):
    created_at: str
    hosts: list[str]
    """Where the value can be sent: `host`, `host:port` or `*.host`. If empty, nowhere."""
    id: str
    name: str
    readable: bool
    """Whether a tool's code receives the value itself instead of a handle."""
    tools: list[GrantedTool]
    """The tools that can use it, oldest grant first."""
    updated_at: str
    version: int
    """Starts at 1 and grows with each new value."""


class SecretInfo(_SecretInfo, total=False):
    """A secret without its value."""
    scope_id: Union[str, None]
    scope_type: Union[str, None]
    """A label from RCRT's clients, such as `global` or `workspace`. It has no effect on access."""


class SecretValue(TypedDict):
    value: str


class Selector(TypedDict, total=False):
    all_tags: Union[list[str], None]
    """All of these tags."""
    any_tags: Union[list[str], None]
    """At least one of these tags (when the list is not empty)."""
    context_match: Union[list[ContextMatch], None]
    exclude_runtime: bool
    """Not a record of the runtime: a tool, a guide, a call, an entry in working memory, a schedule or a definition of
    a schema.
    """
    schema_name: Union[str, None]


class SelectorSubscription(TypedDict):
    """A stored selector of an agent. Its event streams carry events that match one of its selectors."""
    agent_id: str
    created_at: str
    id: str
    owner_id: str
    selector: Selector


class SignIn(TypedDict):
    ticket: str
    """From `POST /auth/ticket`."""


class SignInTicket(TypedDict):
    """A ticket for one sign-in."""
    expires_in: int
    """Seconds in which it must be used."""
    ticket: str
    """For `POST /auth/sign-in`, or the link `/#/sign-in/<ticket>` of the dashboard. Valid once."""


class SlotCount(TypedDict):
    """Slots of one kind."""
    free: int
    used: int


class Start(TypedDict):
    lease: Lease
    max_attempts: int
    """The tool's `limits.max_attempts`, 1 to 10."""


class _StreamMessage(TypedDict):
    data: str
    """As JSON text."""


class StreamMessage(_StreamMessage, total=False):
    """One message of a stream, as an SSE parser returns it."""
    id: Union[str, None]
    """The number after which to resume. If a message has none, the last one counts."""


class StreamTicket(TypedDict):
    """A ticket for one event stream."""
    expires_in: int
    """Seconds in which the stream must be opened."""
    ticket: str
    """For the URL of the stream: `/events/stream?ticket=…`. Valid once."""


class _TenantDone(TypedDict):
    created: bool
    """Whether the tenant is new."""
    ok: bool


class TenantDone(_TenantDone, total=False):
    """A tenant that was created or renamed."""
    first_agent: Union[NewAgentKey, None]


class _TenantInfo(TypedDict):
    created_at: str
    id: str
    name: str


class TenantInfo(_TenantInfo, total=False):
    publish: PublishRule
    """What publishes the tools that agents make."""


class _TenantName(TypedDict):
    name: str
    """Unique; 1 to 200 characters."""


class TenantName(_TenantName, total=False):
    cell: Union[str, None]
    """The cell in which a new tenant begins, on a server with several; named by the operator. When absent, the one of
    `rcrt cell default`.
    """
    publish: Union[PublishRule, None]
    quotas: Union[TenantQuotas, None]


class TenantQuotas(TypedDict, total=False):
    """The quotas of one tenant. Absent or `null`: the operator's default for all tenants. 0: no quota."""
    max_bytes: Union[int, None]
    """The most bytes of contexts: of the records, and of old versions as stored."""
    max_records: Union[int, None]
    """The most records."""
    max_requests: Union[int, None]
    """The most concurrent requests to one server, including event streams and without those of runners."""
    max_tool_bytes: Union[int, None]
    """The most bytes of the contexts of tools, without old versions."""
    max_tool_creations: Union[int, None]
    """The most tools that an agent creates in an hour, unless it is a curator."""
    max_tools: Union[int, None]
    """The most tools."""


class TenantUsage(TypedDict):
    """How much a tenant stores, and its quotas."""
    bytes: int
    """Bytes of contexts: of the records, and of old versions as stored. Those of a deleted record count until its
    events are deleted.
    """
    counted_at: str
    """When both were counted. Later writes of this server are added."""
    in_force: TenantQuotas
    """The quotas in force; `null`: no quota."""
    own: TenantQuotas
    """The tenant's own quotas, as set."""
    records: int


class _TokenInfo(TypedDict):
    agent_id: str
    expires_at: str
    id: str
    """The claim `jti`, by which the token can be revoked."""
    issued_at: str
    number: int
    """Grows with each token that is recorded; the order of the list."""
    profile: Profile
    revoked: bool
    """It was revoked, or its agent was deleted."""
    roles: list[Role]


class TokenInfo(_TokenInfo, total=False):
    """A token that has not expired."""
    agent_name: Union[str, None]
    """Absent if the agent is not registered."""
    last_used_at: Union[str, None]
    """The last use, to the minute; absent if it was never used."""


class _TokenPage(TypedDict):
    tokens: list[ListedToken]
    """The newest first."""


class TokenPage(_TokenPage, total=False):
    """A page of tokens."""
    next: Union[int, None]
    """The value of `before` for the next page; absent on the last one."""


class TokenRequest(TypedDict, total=False):
    agent_id: Union[str, None]
    """The agent. Can be absent in open mode only: a new id."""
    agent_key: Union[str, None]
    """The agent's key, as shown when the agent was created. Not needed in open mode."""
    owner_id: Union[str, None]
    """The tenant. Can be absent in open mode only: the default tenant."""
    profile: Union[Profile, None]
    roles: Union[list[Role], None]
    """Roles for this token, a subset of the agent's; all of the agent's when absent."""
    ttl_sec: Union[int, None]
    """How long the token is valid in seconds, 1 to 2,592,000; 3,600 when absent."""


class _ToolFinding(TypedDict):
    field: str
    """The field of the tool, such as `examples[0].input.a` or `code.source`."""
    message: str
    rule: str
    """The rule's stable name, such as `no-eval`."""


class ToolFinding(_ToolFinding, total=False):
    """What is wrong with a tool, or could be better."""
    column: Union[int, None]
    fix: Union[str, None]
    """How it is corrected."""
    line: Union[int, None]
    """In the code, from 1."""


class ToolFindings(TypedDict):
    errors: list[ToolFinding]
    """If there are any, the tool would not be offered. At most 50."""
    warnings: list[ToolFinding]
    """At most 50."""


class _ToolResponse(TypedDict):
    execution_time_ms: int
    request_id: str
    status: ResponseStatus
    timestamp: str
    tool: str


class ToolResponse(_ToolResponse, total=False):
    """The context of a `tool.response.v1`."""
    error: Union[str, None]
    error_code: Union[ErrorCode, None]
    error_details: dict[str, Any]
    is_retryable: Union[bool, None]
    metadata: dict[str, Any]
    """`console` (captured lines), `attempt`, `runner_id`, what ran (`tool_id`, `tool_schema_name`, `tool_version`,
    `definition_hash`, and `deprecated` if its author announced its end), `notice` (a sentence for whoever reads the
    output), `debug` of a call with `debug`, and what executors add.
    """
    output: Any
    """What the tool returned: any JSON. If that is larger than the caller accepts, a
    [`LargeResult`](crate::LargeResult), and `metadata` has `large_result`.
    """


class ToolSpec(TypedDict):
    tool_spec: dict[str, Any]
    """The context of a `tool.code.v1`."""


class _ToolStats(TypedDict):
    calls: int
    """Exact, as are all counts."""
    duration_ms: Percentiles
    """As in a call's `duration_ms`. Percentiles are within 10 % of the exact value."""
    failed: int
    failures: dict[str, int]
    """Failed calls by error code."""
    per_second: float
    run_ms: Percentiles
    """The tool alone, of the calls that ran."""


class ToolStats(_ToolStats, total=False):
    """The finished calls of one tool, or of all."""
    tool: Union[str, None]
    """Absent for all tools together."""


class ToolTypes(TypedDict):
    """TypeScript declarations."""
    types: str
    """The text of a `.d.ts` file."""


class ToolValidation(TypedDict):
    """The result of the validators."""
    definition_hash: str
    """Identifies exactly this definition."""
    valid: bool
    """Whether there are no errors."""
    validation: ToolFindings


class TypesOf(TypedDict, total=False):
    tool_spec: Union[dict[str, Any], None]
    """The context of a `tool.code.v1`."""


class Violation(TypedDict):
    """One invalid field of an input, with what is accepted."""
    field: str
    """The field, as a dotted path from the root of the input (`context.tool`, `tags[3]`). Empty for the whole input."""
    message: str
    """What is wrong and what is accepted, as a sentence for the caller."""


class _Waiting(TypedDict):
    missing_requirements: list[str]
    """What is missing. Each is a sentence that says what to do."""
    name: str
    source: ToolSource
    tool_id: str


class Waiting(_Waiting, total=False):
    """A tool that cannot be called yet."""
    tags: list[str]
    """The tags of the record that defines the tool."""


class _WebhookInfo(TypedDict):
    agent_id: str
    created_at: str
    failures: int
    """Consecutive failed attempts."""
    id: str
    state: WebhookState
    url: str
    waiting: int
    """Queued deliveries, counted up to 10,000."""


class WebhookInfo(_WebhookInfo, total=False):
    delivered_at: Union[str, None]
    """The time of the last successful delivery."""
    description: Union[str, None]
    held_until: Union[str, None]
    """After many failures: no attempt is made before this time."""
    last_error: Union[str, None]
    paused_because: Union[str, None]
    """Why it is paused: by request, or because of the receiver's responses."""
    selector: Union[Selector, None]


class WebhookSecret(TypedDict):
    """The secret that signs deliveries."""
    secret: str
    """8 to 500 characters: `whsec_` and 24 to 64 bytes in base64, as in Standard Webhooks, or any text, whose bytes
    are the key.
    """


class _CallSummary(Call):
    request_id: str
    """The caller's own id, or the id of the request's record."""


class CallSummary(_CallSummary, total=False):
    """A call in a list."""
    agent_id: Union[str, None]
    """The agent that asked for the call."""
    claimed_at: Union[str, None]
    """When a runner last claimed the call."""
    deadline_at: Union[str, None]
    duration_ms: Union[float, None]
    """How long the finished call took: from the write of the request to that of the response, or the tool's run if
    that is longer. A tool can run before its request is written.
    """
    error_code: Union[ErrorCode, None]
    finished_at: Union[str, None]
    parent: Union[str, None]
    """The request whose call wrote this call's request."""
    session: Union[str, None]
    started_at: Union[str, None]
    """When the last attempt was started. Absent for a call that only computes and ended at once."""
    status: Union[ResponseStatus, None]


class Changed(Breadcrumb):
    """The response to an update."""
    ok: bool
    """`true`: RCRT's clients check it."""


class EgressEntry(EgressRecord):
    """One entry of the log."""
    id: int
    """Later entries have larger ids."""


class HygieneReport(HygieneStats):
    """Statistics about the deletion of expired records."""
    hygiene_enabled: bool
    """Always true: expired records are always deleted."""
    last_updated: str
    """When these statistics were collected."""
    total_agents_cleaned: int
    """Always 0: agents do not expire here."""


class HygieneRunReport(HygieneRun):
    """The result of a run."""
    message: str
    total_cleaned: int
    triggered: bool


class ListedToken(TokenInfo):
    current: bool
    """Whether it is the token of this request."""


class NewAgentKey(AgentInfo):
    """A new agent with its key. The key is shown only once; the store has only a hash of it."""
    agent_key: str


class RankedTool(Registration):
    """A tool with its score."""
    score: float
    """From 0 to 1: how well the tool fits. Scores of different texts can be compared."""


class TenantDetails(TenantInfo):
    """A tenant, with its usage and its quotas."""
    usage: TenantUsage


class _CallDetails(CallSummary):
    attempts: list[CallAttempt]
    """The attempts that were started, oldest first."""
    children: list[CallSummary]
    """The calls that this call's tool asked for, newest first, at most 100."""
    stages: list[CallStage]
    """What the last attempt spent its time on, in order."""
    trace_id: str
    """The trace of the call, 32 hex digits. A call without a `traceparent` begins a trace. Its id is that of the
    request without dashes, unless its runner exports traces.
    """


class CallDetails(_CallDetails, total=False):
    """One call, with everything that is stored about it."""
    request_record: Union[Breadcrumb, None]
    response_record: Union[Breadcrumb, None]
    runner_id: Union[str, None]
    """The runner that has the call or finished it."""
