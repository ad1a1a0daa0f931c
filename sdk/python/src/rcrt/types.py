"""The shapes on the wire, by the names that the OpenAPI document gives them. Written by generate.py."""

from __future__ import annotations

from typing import Any, Literal, TypedDict, Union

Action = Literal["read_context", "read_full", "update", "delete", "subscribe"]
"""What a grant opens."""
CallState = Literal["queued", "claimed", "running", "finished"]
CatalogEntry = Union["Waiting", "Registration"]
"""A tool that can be called, or (it has `waits_for`) one that cannot be called yet."""
EgressOutcome = Literal["answered", "refused", "failed"]
"""How a request through the gate ended."""
ErrorCode = Literal["ToolNotFound", "InvalidArguments", "PermissionDenied", "Timeout", "ResourceExhausted", "ExecutionFailed", "InvalidOutput", "Cancelled"]
"""Why a call failed."""
EventNumber = int
"""An event's place in its tenant's order. Numbers grow but are not dense; a subscriber that names the last number it
saw gets every later event once, in order.
"""
LeaseStatus = Literal["held", "cancel_requested", "lost"]
MatchOp = Literal["eq", "ne", "gt", "gte", "lt", "lte", "contains", "contains_any", "exists"]
Profile = Literal["main", "subagent", "scheduled", "a2asynthesis"]
"""The kind of agent that a token is for."""
Profiles = list["Profile"]
"""The profiles under which a request is made: its author's, and those of the calls that led to it. A tool is there
only where each of them allows it.
"""
Release = Union[Literal["unstarted"], dict[str, Any]]
"""How a runner gives a call back."""
ResponseStatus = Literal["success", "error"]
Role = Literal["curator", "emitter", "subscriber", "runner"]
"""What an agent may do. Roles add up."""
Sensitivity = Literal["low", "pii", "secret"]
Tag = str
"""A tag, as the description of the API has it; in Rust it is its text."""
ToolInFormat = Union["CatalogEntry", dict[str, Any]]
"""As rcrt, openai, anthropic, mcp."""
ToolList = Union["Catalog", list[dict[str, Any]], dict[str, Any]]
"""As rcrt, openai, anthropic, mcp."""
ToolSource = str
"""What runs a tool: native, sandbox, rest, mcp:<server> or the name of another kind of executor."""
TtlType = Literal["never", "datetime", "duration", "usage", "hybrid"]
"""How a record's end is decided: never; at the moment `ttl`; `ttl_config.duration` after the write; by its last
permitted read (`ttl_config.max_reads`); or by time or reads, whichever comes first (`hybrid`).
"""
Visibility = Literal["public", "team", "private"]
WebhookState = Literal["active", "paused"]

class Accepted(TypedDict):
    """The request stands, and its answer will come."""
    cancel: str
    """`POST` to this path cancels the call."""
    request: str
    """The request's record."""
    request_id: str
    """The answer will be tagged `request:<request_id>`."""


class _AclChange(TypedDict):
    breadcrumb_id: str


class AclChange(_AclChange, total=False):
    """Actions to be granted or revoked. Exactly one grantee, and `action` or `actions`."""
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
    """A record opened to an agent (of whatever tenant), or to all agents of a tenant: one of the two is named."""
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
    """Which tools are kept from it; as it was made, for good."""


class _AgentRegistration(TypedDict):
    roles: list[Role]
    """All that it has from now on."""


class AgentRegistration(_AgentRegistration, total=False):
    """An agent of a chosen id: made, or changed where it is there."""
    name: Union[str, None]
    """Unique in its tenant; 1 to 200 characters. When absent it stays, and of a new agent it is the id."""
    profile: Union[Profile, None]


class Annotations(TypedDict, total=False):
    """The hints of the Model Context Protocol (its `ToolAnnotations`, revision 2025-06-18), with its defaults: a tool
    that says nothing of itself is taken to change things for good, out in the world. Nothing is enforced by them.
    """
    destructive: bool
    """What it changes may be lost. Says nothing where it is read-only."""
    idempotent: bool
    """The same call again changes nothing more."""
    open_world: bool
    """It deals with things outside of this installation."""
    read_only: bool
    """It changes nothing."""
    title: Union[str, None]
    """For people."""


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
    """A record as the store has it, with everything (the *full* view)."""
    created_by: Union[str, None]
    """The agent that wrote the first version."""
    description: Union[str, None]
    llm_hints: dict[str, Any]
    read_count: Union[int, None]
    """Of a record that ends by its reads (`ttl_type` usage or hybrid): how often it was read, this time included."""
    reads_left: Union[int, None]
    """Of such a record: how many reads are left. With the last one it is gone."""
    schema_name: Union[str, None]
    semantic_version: Union[str, None]
    ttl: Union[str, None]
    ttl_config: dict[str, Any]
    ttl_type: Union[TtlType, None]
    updated_by: Union[str, None]
    """The agent that wrote this version."""
    warnings: list[Violation]
    """In the answer to a write: what the definition of its schema name warns of."""


class BreadcrumbChanges(TypedDict, total=False):
    """What a caller gives to change a record: a field that is absent stays as it is; the context is replaced whole.
    Unknown fields are refused.
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
    """The tenant, when it is another one, which shares the record."""
    redacted: bool
    """The record's `sensitivity` is `secret`: its context, which was asked for, is empty here. Who may read the record
    reads it by id.
    """
    schema_name: Union[str, None]
    score: Union[float, None]
    """Of a search: how well it matches. Larger is better; only comparable within one answer."""


class _BreadcrumbVersion(TypedDict):
    checksum: str
    context: dict[str, Any]
    tags: list[str]
    title: str
    updated_at: str
    version: int


class BreadcrumbVersion(_BreadcrumbVersion, total=False):
    """One version of a record, as its history tells it."""
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
    """How many attempts were started."""
    cancel_requested: bool
    max_attempts: int
    queued_at: str
    request: str
    """The request's record."""
    state: CallState
    tool: str


class Call(_Call, total=False):
    """Where a request stands."""
    response: Union[str, None]
    """The response's record, once finished."""


class Catalog(TypedDict):
    """All tools of a tenant, each name once, sorted by name."""
    tools: list[Registration]
    waiting: list[Waiting]


class _Claim(TypedDict):
    attempt: int
    """Which attempt this would be, from 1."""
    lease: Lease
    queued_at: str
    request: Breadcrumb


class Claim(_Claim, total=False):
    profiles: Profiles
    """Of whoever wrote the request, and of the calls that led to it, as they stood when it was written."""
    ready_at: Union[str, None]
    """Since when this attempt could have been claimed: a retry waits for its time."""
    time_left_ms: Union[int, None]
    """Milliseconds until the request's deadline, at the moment of the claim and by the database's clock."""


class _ClaimRequest(TypedDict):
    lease_ms: int
    """How long the lease lasts without a heartbeat, in milliseconds, 1,000 to 600,000."""
    limit: int
    """How many calls at most, 1 to 100. The oldest come first."""
    runner_id: str
    """This runner process."""


class ClaimRequest(_ClaimRequest, total=False):
    """What a runner asks for when it has room."""
    except_tools: list[str]
    """Tools that this runner has no room for now."""


class Complete(TypedDict):
    lease: Lease
    response: NewBreadcrumb
    """The `tool.response.v1` record."""


class Completed(TypedDict):
    """The response's record."""
    id: str


class _ContextMatch(TypedDict):
    op: MatchOp
    path: str
    """`$.a.b`, `$.items[0].name`."""


class ContextMatch(_ContextMatch, total=False):
    """One condition on the context."""
    value: Any
    """What the operator compares with. `exists` takes `true` (the default) or `false`."""


class _Created(TypedDict):
    id: str
    version: int


class Created(_Created, total=False):
    """The answer to a create."""
    replayed: bool
    """True when this answer was given before, to the same `Idempotency-Key` and body."""
    warnings: list[Violation]
    """What the definition of the record's schema name warns of. The record was written."""


class DeadLetter(TypedDict):
    """A delivery that was given up."""
    agent_id: str
    attempts: int
    created_at: str
    """When it was given up."""
    id: str
    """The `webhook-id` of its attempts, also of those after a retry."""
    last_error: str
    """What came of the last attempt."""
    payload: dict[str, Any]
    """The event, as it was posted."""
    url: str
    webhook_id: str


class _Decryption(TypedDict):
    reason: str
    """Why the value is needed, for the audit log; 1 to 1000 characters."""


class Decryption(_Decryption, total=False):
    tool_id: Union[str, None]
    """The record of the tool that it is for; the secret must be granted to it. Only a curator may leave it out."""


class Done(TypedDict):
    """What was asked is done. (A body and not `204`: RCRT's clients read every answer as JSON.)"""
    ok: bool


class _EgressPage(TypedDict):
    entries: list[EgressEntry]
    """The newest first."""


class EgressPage(_EgressPage, total=False):
    """A page of the egress log."""
    next: Union[int, None]
    """What `before` is to be for the next page; absent on the last one."""


class _EgressRecord(TypedDict):
    at: str
    """When it was begun."""
    bytes_in: int
    """Bytes of the answer's body that were read, as they came."""
    bytes_out: int
    """Bytes of the request's body."""
    duration_ms: int
    """Until the answer's body was read or left, in milliseconds."""
    host: str
    """As it was judged: a lower-case name or an address."""
    method: str
    """`GET` and so on; `_OTHER` for methods that no standard names."""
    outcome: EgressOutcome
    port: int
    tool: str
    """The tool's name; `webhooks` for deliveries to webhooks."""


class EgressRecord(_EgressRecord, total=False):
    """One request through the gate. A redirect that is followed is a request of its own."""
    agent_id: Union[str, None]
    """Who asked for the call."""
    call: Union[str, None]
    """The `tool.request.v1` record of the call; of a delivery its id."""
    reason: Union[str, None]
    """Why it was refused."""
    status: Union[int, None]
    """The HTTP status of the answer."""
    tool_id: Union[str, None]
    """The tool's record."""


class EgressRecords(TypedDict):
    entries: list[EgressRecord]
    """At most 1000."""


class Emptied(TypedDict):
    """How many there were."""
    deleted: int
    ok: bool


class GiveBack(TypedDict):
    lease: Lease
    release: Release


class GivenToken(TypedDict):
    agent_id: str
    exp: int
    """When the token ends, in seconds since 1970."""
    expires_in: int
    """Seconds until then, for callers whose clock is not ours."""
    owner_id: str
    profile: Profile
    roles: list[Role]
    token: str


class Granted(TypedDict):
    """The grant."""
    id: str


class GrantedTool(TypedDict):
    """A tool that was given a secret. The grant belongs to the tool's record, and ends with it: another record that
    takes the name gets nothing.
    """
    granted_at: str
    granted_by: str
    """The agent that gave it."""
    tool: str
    """The name that the record has now."""
    tool_id: str
    """The tool's record."""
    tool_version: int
    """The record's version at the grant. An older one that runs in its place gets nothing: from the grant on only
    curators change the record, so no code uses the secret that a curator has not given it to.
    """


class Health(TypedDict):
    status: str
    """`ok`; anything else is a problem document with status 503."""
    version: str
    """The server's version."""


class Heartbeat(TypedDict):
    lease_ms: int
    """How long each lease lasts from now, in milliseconds, 1,000 to 600,000."""
    leases: list[Lease]
    """At most 1,000."""


class HeldLease(TypedDict):
    """What a heartbeat learns about one lease."""
    lease: Lease
    status: LeaseStatus


class HygieneRun(TypedDict):
    """What one run did."""
    duration_ms: int
    expired_breadcrumbs_purged: int
    """The other ended records."""
    health_checks_purged: int
    """Requests among the ended records that were tagged `health:check`."""
    is_complete: bool
    """False when more is left than one run may take: the next one goes on."""


class _HygieneStats(TypedDict):
    last_run_duration_ms: int
    last_run_errors: int
    """1 when the last run did not come to its end."""
    last_run_purged: int
    runs_completed: int
    """Runs that had something to take out, and those that somebody asked for."""
    total_breadcrumbs_purged: int
    waiting: int
    """Records that have ended and wait to be taken out. Readers do not see them."""


class HygieneStats(_HygieneStats, total=False):
    """What the purging of a tenant's ended records came to, over all servers and restarts."""
    last_run_at: Union[str, None]
    """The beginning and the end of the last run, and what it took out."""


class Invocation(TypedDict, total=False):
    deadline_ms: Union[int, None]
    """Milliseconds from now within which the request is answered, else `Timeout`."""
    input: Any
    """What the tool is called with; `{}` when absent."""
    max_result_chars: Union[int, None]
    """How many characters of a result the caller takes at once."""
    model: Union[str, None]
    """The model that will read the answer: it decides how long a result may be."""
    requestId: Union[str, None]
    """The caller's own id for the request; the answer is tagged `request:<requestId>`."""
    session: Union[str, None]
    """The conversation: a large result goes to its working memory, in parts."""
    workspace: Union[str, None]
    """Where the request and its answer belong: the tag `workspace:…`, or the name after the colon."""


class Latest(TypedDict):
    """The number of the newest event."""
    number: EventNumber


class Lease(TypedDict):
    """The right to run one call, until the lease ends. A store refuses whoever shows an old fence."""
    fence: int
    """Grows with every claim of this call."""
    request: str
    """The request's record."""


class _NewAgent(TypedDict):
    name: str
    """Unique in its tenant; 1 to 200 characters."""
    roles: list[Role]


class NewAgent(_NewAgent, total=False):
    profile: Profile
    """`main` when absent."""


class _NewBreadcrumb(TypedDict):
    title: str


class NewBreadcrumb(_NewBreadcrumb, total=False):
    """What a caller gives to create a record. Unknown fields are refused."""
    context: dict[str, Any]
    description: Union[str, None]
    llm_hints: dict[str, Any]
    schema_name: Union[str, None]
    semantic_version: Union[str, None]
    sensitivity: Sensitivity
    tags: list[Tag]
    ttl: Union[str, None]
    """When the record ends, for `ttl_type` datetime (or none) and hybrid."""
    ttl_config: dict[str, Any]
    """`duration`: seconds above 0, or a text such as `"2h"` (for `ttl_type` duration and hybrid). `max_reads`: how
    often the record can be read by its id (for usage and hybrid).
    """
    ttl_type: Union[TtlType, None]
    visibility: Visibility


class NewGrant(TypedDict, total=False):
    """The tool, by its record or by its name."""
    tool: Union[str, None]
    """The tool's name, where one record alone has it."""
    tool_id: Union[str, None]
    """The tool's record."""


class _NewSecret(TypedDict):
    name: str
    """A letter, a digit or `_`, then also spaces and any of `.:/@+()-`; at most 200 characters; unique in its tenant.
    A tool's `required_secrets` can name it if it is a letter or `_`, then letters, digits and `_`.
    """
    value: str
    """1 to 65,536 bytes; at least 8 where tools may not read it."""


class NewSecret(_NewSecret, total=False):
    hosts: list[str]
    """Where the value may go: `api.example.com`, `api.example.com:8443`, `*.example.com`; at most 50."""
    readable: bool
    """Whether the code of a tool gets the value itself. Default: no, it gets a handle."""
    scope_id: Union[str, None]
    """Belongs to `scope_type`."""
    scope_type: Union[str, None]
    """A label, which opens and closes nothing: RCRT's clients say there what the secret is for. At most 100
    characters.
    """


class _NewWebhook(TypedDict):
    url: str
    """Absolute, http or https, without a user name or password; at most 2048 bytes. That it leads to the public
    internet is judged at each delivery.
    """


class NewWebhook(_NewWebhook, total=False):
    description: Union[str, None]
    """For people; at most 1000 characters."""
    selector: Union[Selector, None]


class _Problem(TypedDict):
    code: str
    detail: str
    """What went wrong with this request, and what would be right."""
    status: int
    """The HTTP status."""
    title: str
    type: str
    """Where the code is explained: `/docs#problem-<code>`."""


class Problem(_Problem, total=False):
    """An RFC 9457 problem document. `code` is the stable name of the problem; the members after it belong to some
    codes only.
    """
    actual: Union[int, None]
    """`version_conflict`: the version that the record is at."""
    column: Union[int, None]
    expected: Union[int, None]
    """`version_conflict`: the version that the caller named."""
    id: Union[str, None]
    """`not_found`: its id. `lease_lost`: the request's."""
    limit: Union[int, None]
    """`too_large`: the most bytes that are taken. `quota_exceeded`: the most that the tenant may keep."""
    line: Union[int, None]
    """`malformed_json`: where the reader stopped, from 1."""
    nearest: list[str]
    """`tool_not_found`: names of tools that may have been meant."""
    quota: Union[str, None]
    """`quota_exceeded`: which quota, `records` or `bytes`."""
    used: Union[int, None]
    """`quota_exceeded`: how much the tenant keeps."""
    violations: list[Violation]
    """`invalid`: everything that is wrong with the input."""
    what: Union[str, None]
    """`not_found`: the kind of thing that is not there."""


class PurgeReport(TypedDict):
    """What a purge did, as RCRT tells it."""
    expired_purged: int
    health_checks_purged: int
    purged: int
    ttl_purged: int


class _Registered(TypedDict):
    created: bool
    """Whether the agent was not there before."""
    ok: bool


class Registered(_Registered, total=False):
    """What became of a registration."""
    agent_key: Union[str, None]
    """Of a new agent its key, shown this once."""


class _Registration(TypedDict):
    name: str
    parameters: dict[str, Any]
    """JSON Schema 2020-12 of the input. `true` admits everything."""
    source: ToolSource
    tool_id: str
    """The record that defines the tool."""
    tool_version: int
    """The version of that record that serves."""


class Registration(_Registration, total=False):
    """A tool that can be called, whatever runs it."""
    annotations: Annotations
    description: str
    """For whoever chooses among tools."""


class Requeued(TypedDict):
    """It will be tried again."""
    requeued: bool


class RevokeTokens(TypedDict, total=False):
    """Which tokens: `token` or `jti` for one, `all` for every token of an agent so far. With none of them: the token
    that the request was sent with.
    """
    agent_id: Union[str, None]
    """The agent of `jti` or `all`; the caller when absent. Others' tokens are revoked by curators."""
    all: bool
    """`true`: all tokens of the agent that were issued before now."""
    jti: Union[str, None]
    """The token's id, its claim `jti`."""
    token: Union[str, None]
    """The token itself."""


class Revoked(TypedDict):
    """How many grants were changed: none, or one."""
    rows: int


class _RevokedTokens(TypedDict):
    agent_id: str
    ok: bool


class RevokedTokens(_RevokedTokens, total=False):
    """What was revoked."""
    issued_before: Union[str, None]
    """All that were issued before this time."""
    jti: Union[str, None]
    """The one token."""


class SecretChanges(TypedDict, total=False):
    """What is to be different about a secret; the rest stays. Its grants stay in any case."""
    hosts: Union[list[str], None]
    """In place of all hosts that it is bound to; `[]` binds it to none."""
    readable: Union[bool, None]
    value: Union[str, None]
    """A new value in place of the old one."""


class _SecretInfo(TypedDict):
    created_at: str
    hosts: list[str]
    """Where the value may go, as `host`, `host:port` or `*.host`. To no host: to none."""
    id: str
    name: str
    readable: bool
    """Whether the code of a tool gets the value itself, and not only a handle for it."""
    tools: list[GrantedTool]
    """Who may use it, the oldest grant first."""
    updated_at: str
    version: int
    """Starts at 1 and grows with each new value."""


class SecretInfo(_SecretInfo, total=False):
    """A secret without its value."""
    scope_id: Union[str, None]
    scope_type: Union[str, None]
    """What RCRT's clients say it is for, such as `global` or `workspace`: a label, which opens and closes nothing."""


class SecretValue(TypedDict):
    value: str


class Selector(TypedDict, total=False):
    all_tags: Union[list[str], None]
    """All of these tags."""
    any_tags: Union[list[str], None]
    """At least one of these tags (when the list is not empty)."""
    context_match: Union[list[ContextMatch], None]
    schema_name: Union[str, None]


class SelectorSubscription(TypedDict):
    """A selector that an agent keeps: its event streams carry what one of its selectors means."""
    agent_id: str
    created_at: str
    id: str
    owner_id: str
    selector: Selector


class Start(TypedDict):
    lease: Lease
    max_attempts: int
    """The tool's `limits.max_attempts`, 1 to 10."""


class _StreamMessage(TypedDict):
    data: str
    """As JSON text."""


class StreamMessage(_StreamMessage, total=False):
    """One message of a stream, as an SSE parser gives it."""
    id: Union[str, None]
    """The number to go on after; the last one counts where a message has none."""


class StreamTicket(TypedDict):
    """A ticket for one event stream."""
    expires_in: int
    """Seconds in which the stream has to be opened."""
    ticket: str
    """Goes into the address of the stream: `/events/stream?ticket=…`. Good once."""


class _TenantDone(TypedDict):
    created: bool
    """Whether it was not there before."""
    ok: bool


class TenantDone(_TenantDone, total=False):
    """A tenant that was made or renamed."""
    first_agent: Union[NewAgentKey, None]


class TenantInfo(TypedDict):
    created_at: str
    id: str
    name: str


class _TenantName(TypedDict):
    name: str
    """Unique; 1 to 200 characters."""


class TenantName(_TenantName, total=False):
    quotas: Union[TenantQuotas, None]


class TenantQuotas(TypedDict, total=False):
    """The bounds of one tenant. Absent or `null`: what the operator gives to every tenant; 0: no bound."""
    max_bytes: Union[int, None]
    """Bytes of contexts: of the records, and of old versions as they are stored."""
    max_records: Union[int, None]
    """Records."""


class TenantUsage(TypedDict):
    """What a tenant keeps, and how much it may."""
    bytes: int
    """Of contexts: of the records, and of old versions as they are stored. Those of a deleted record count until its
    events are forgotten.
    """
    counted_at: str
    """Both were counted then, and what this server wrote since is added."""
    in_force: TenantQuotas
    """The bounds in force; `null`: none."""
    own: TenantQuotas
    """The tenant's own bounds, as they were set."""
    records: int


class TokenRequest(TypedDict, total=False):
    agent_id: Union[str, None]
    """The agent. May be left out in open mode only: a new id."""
    agent_key: Union[str, None]
    """The agent's key, as it was shown when the agent was made. Not needed in open mode."""
    owner_id: Union[str, None]
    """The tenant. May be left out in open mode only: the default tenant."""
    profile: Union[Profile, None]
    roles: Union[list[Role], None]
    """Roles for this token, a subset of the agent's; all of the agent's when absent."""
    ttl_sec: Union[int, None]
    """How long the token is good for in seconds, 1 to 2,592,000; 3,600 when absent."""


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
    """`console` (captured lines), `attempt`, `runner_id`, what ran (`tool_id`, `tool_schema_name`, `tool_version`),
    and what executors add.
    """
    output: Any


class Violation(TypedDict):
    """One thing that is wrong with an input: where, and what would be right."""
    field: str
    """The field, as a dotted path from the root of the input (`context.tool`, `tags[3]`); empty for the whole."""
    message: str
    """What is wrong and what would be right, as a sentence for the caller."""


class Waiting(TypedDict):
    """A tool that cannot be called yet."""
    name: str
    source: ToolSource
    tool_id: str
    waits_for: list[str]
    """What is missing, each a sentence for people that says what to do."""


class _WebhookInfo(TypedDict):
    agent_id: str
    created_at: str
    failures: int
    """Attempts in a row that failed."""
    id: str
    state: WebhookState
    url: str
    waiting: int
    """What is queued now, counted to 10,000."""


class WebhookInfo(_WebhookInfo, total=False):
    delivered_at: Union[str, None]
    """The last time that the receiver took one."""
    description: Union[str, None]
    held_until: Union[str, None]
    """While many failed: nothing is tried before then."""
    last_error: Union[str, None]
    paused_because: Union[str, None]
    """Of a paused one: that somebody asked for it, or what the receiver did."""
    selector: Union[Selector, None]


class WebhookSecret(TypedDict):
    """What deliveries are signed with."""
    secret: str
    """8 to 500 characters. `whsec_` and 24 to 64 bytes in base64, as Standard Webhooks has it, or any text, whose
    bytes are the key.
    """


class Changed(Breadcrumb):
    """The answer to a change."""
    ok: bool
    """`true`: RCRT's clients look for it."""


class EgressEntry(EgressRecord):
    """One line of the log."""
    id: int
    """Its place in the log; later entries have higher ones."""


class HygieneReport(HygieneStats):
    """What the purging of ended records came to."""
    hygiene_enabled: bool
    """Ended records are always taken out."""
    last_updated: str
    """When this was told."""
    total_agents_cleaned: int
    """Agents do not end by themselves here."""


class HygieneRunReport(HygieneRun):
    """What a run did."""
    message: str
    total_cleaned: int
    triggered: bool


class NewAgentKey(AgentInfo):
    """A new agent with its key. The key is shown this once; the store keeps only a hash."""
    agent_key: str


class TenantDetails(TenantInfo):
    """A tenant, with what it keeps and may keep."""
    usage: TenantUsage
