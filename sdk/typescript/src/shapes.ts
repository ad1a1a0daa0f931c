/** The shapes on the wire, by the names that the OpenAPI document gives them. */
import type { components } from "./api.js";

type Schemas = components["schemas"];

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

export type Breadcrumb = Schemas["Breadcrumb"];
export type BreadcrumbChanges = Schemas["BreadcrumbChanges"];
export type BreadcrumbListItem = Schemas["BreadcrumbListItem"];
export type BreadcrumbVersion = Schemas["BreadcrumbVersion"];
export type BreadcrumbView = Schemas["BreadcrumbView"];
export type Created = Schemas["Created"];
export type NewBreadcrumb = Schemas["NewBreadcrumb"];

export type Accepted = Schemas["Accepted"];
export type Call = Schemas["Call"];
export type Catalog = Schemas["Catalog"];
export type CatalogEntry = Schemas["CatalogEntry"];
export type Claim = Schemas["Claim"];
export type ClaimRequest = Schemas["ClaimRequest"];
export type LeaseState = Schemas["LeaseState"];
export type ReportReply = Schemas["ReportReply"];
export type RunnerInfo = Schemas["RunnerInfo"];
export type RunnerReport = Schemas["RunnerReport"];
export type Invocation = Omit<Schemas["Invocation"], "input"> & { input?: unknown };
export type LargeResult = Schemas["LargeResult"];
export type Lease = Schemas["Lease"];
export type PublishedTool = Schemas["PublishedTool"];
export type RankedCatalog = Schemas["RankedCatalog"];
export type Release = Schemas["Release"];
export type ToolValidation = Schemas["ToolValidation"];
/** The output can be any JSON. */
export type ToolResponse = Omit<Schemas["ToolResponse"], "output"> & { output?: unknown };

export type AgentInfo = Schemas["AgentInfo"];
export type NewAgent = Schemas["NewAgent"];
export type NewAgentKey = Schemas["NewAgentKey"];
export type GivenToken = Schemas["GivenToken"];
export type TokenRequest = Schemas["TokenRequest"];
export type Profile = Schemas["Profile"];
export type Role = Schemas["Role"];

export type AgentRegistration = Schemas["AgentRegistration"];
export type Registered = Schemas["Registered"];
export type TenantDone = Schemas["TenantDone"];
export type TenantInfo = Schemas["TenantInfo"];

export type NewGrant = Schemas["NewGrant"];
export type NewSecret = Schemas["NewSecret"];
export type SecretChanges = Schemas["SecretChanges"];
export type SecretInfo = Schemas["SecretInfo"];

export type AclChange = Schemas["AclChange"];
export type AclEntry = Schemas["AclEntry"];
export type SelectorSubscription = Schemas["SelectorSubscription"];

export type DeadLetter = Schemas["DeadLetter"];
export type NewWebhook = Schemas["NewWebhook"];
export type WebhookInfo = Schemas["WebhookInfo"];

export type RevokeTokens = Partial<Schemas["RevokeTokens"]>;
export type RevokedTokens = Schemas["RevokedTokens"];
export type StreamTicket = Schemas["StreamTicket"];
export type TokenInfo = Schemas["TokenInfo"];
export type TokenPage = Schemas["TokenPage"];

/** A filter of tokens. */
export interface TokenQuery {
  agent_id?: string;
  before?: number;
  limit?: number;
}

export type AuditEntry = Schemas["AuditEntry"];
export type AuditPage = Schemas["AuditPage"];

/** A filter of the audit log. All conditions must match. */
export interface AuditQuery {
  /** An action such as `secret.decrypted`, or a group such as `secret`. */
  action?: string;
  agent_id?: string;
  subject?: string;
  tool_id?: string;
  /** Times in RFC 3339 format. */
  since?: string;
  until?: string;
  before?: number;
  limit?: number;
}

export type CallDetails = Schemas["CallDetails"];
export type CallSummary = Schemas["CallSummary"];
export type CallPage = Schemas["CallPage"];
export type CallStats = Schemas["CallStats"];

/** Which calls to list; all conditions must match. */
export interface CallQuery {
  state?: "queued" | "claimed" | "running" | "finished";
  tool?: string;
  agent_id?: string;
  session?: string;
  status?: "success" | "error";
  error_code?: string;
  /** The request whose call asked for the calls. */
  parent?: string;
  /** The request's `requestId`, or the id of its record. */
  request_id?: string;
  /** A tag of the request. */
  tag?: string;
  /** Words in the request or the response. */
  text?: string;
  since?: string;
  until?: string;
  before?: string;
  limit?: number;
}

export type EgressEntry = Schemas["EgressEntry"];
export type EgressPage = Schemas["EgressPage"];

/** A filter of the egress log. All conditions must match. */
export interface EgressQuery {
  tool?: string;
  host?: string;
  agent_id?: string;
  call?: string;
  outcome?: "answered" | "refused" | "failed";
  /** Times in RFC 3339 format. */
  since?: string;
  until?: string;
  before?: number;
  limit?: number;
}

export type Health = Schemas["Health"];
export type HygieneReport = Schemas["HygieneReport"];
export type HygieneRunReport = Schemas["HygieneRunReport"];

/** A selector of records. All conditions must match. */
export interface Selector {
  /** The record has at least one of them. */
  any_tags?: string[];
  /** The record has all of them. */
  all_tags?: string[];
  schema_name?: string;
  context_match?: ContextMatch[];
  /** Without tools, guides, calls, working memory, schedules and definitions of schemas. */
  exclude_runtime?: boolean;
}

/** A condition on a record's context. */
export interface ContextMatch {
  /** Such as `$.a.b`. */
  path: string;
  op: "eq" | "ne" | "gt" | "gte" | "lt" | "lte" | "contains" | "contains_any" | "exists";
  value?: unknown;
}
