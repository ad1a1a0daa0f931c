/**
 * The server's routes as methods. Names on the wire are not changed: `schema_name`, not
 * `schemaName`.
 */
import * as authoring from "./authoring.js";
import type { Credentials } from "./credentials.js";
import { foreign, invalidArgument, ProblemError, ToolError } from "./errors.js";
import { follow, type EventItem, type FollowOptions } from "./events.js";
import { invoke, invokeFor, type InvokeOptions } from "./invoke.js";
import type * as models from "./models.js";
import { checkOptions, type Names } from "./options.js";
import { parts } from "./parts.js";
import { backoff, pause } from "./pause.js";
import type * as shapes from "./shapes.js";
import { asJson, etag, newKey, REQUEST_OPTIONS, Transport, type RequestOptions } from "./transport.js";

export type RcrtOptions = Credentials & {
  /**
   * The server's URL, such as `http://127.0.0.1:8081`. A path in it is the prefix of the server's
   * paths.
   */
  url: string | URL;
  /** A `fetch` to use instead of the global one. */
  fetch?: typeof fetch;
  /**
   * How long a request is tried again, in milliseconds, if the server cannot be reached but has
   * answered this client before. The default is 30,000; a request makes at least six attempts. A
   * server that has never answered gets no more than that, for about three seconds.
   */
  retryMs?: number;
};

export interface ListOptions extends RequestOptions {
  /** The records have all of these tags. */
  tag?: string | string[];
  /** The records have at least one of these tags. */
  anyTag?: string | string[];
  schemaName?: string;
  contextMatch?: shapes.ContextMatch[];
  /** Without tools, guides, calls, working memory, schedules and definitions of schemas. */
  excludeRuntime?: boolean;
  includeContext?: boolean;
  /** 1 to 1000. */
  limit?: number;
  offset?: number;
}

export interface SearchOptions extends Omit<ListOptions, "limit" | "offset"> {
  /** The most results. */
  nn?: number;
  /** By meaning, by words, or both. By default what the server supports. */
  mode?: "vector" | "text" | "hybrid";
  /** The vector of the query, if you have it. */
  qvec?: number[];
}

export interface ToolsOptions extends RequestOptions {
  /** Also filter by this profile. */
  profile?: shapes.Profile;
  /** Only the tools with these names or tags, and those that read large results. */
  tool?: string | string[];
  /** The same, by tags of the tools. */
  tag?: string | string[];
}

const SELECTION = { ...REQUEST_OPTIONS, tag: true, anyTag: true, schemaName: true, contextMatch: true, excludeRuntime: true, includeContext: true } as const;
const LIST_OPTIONS: Names<ListOptions> = { ...SELECTION, limit: true, offset: true };
const SEARCH_OPTIONS: Names<SearchOptions> = { ...SELECTION, nn: true, mode: true, qvec: true };
const TOOLS_OPTIONS: Names<ToolsOptions> = { ...REQUEST_OPTIONS, profile: true, tool: true, tag: true };
const CLIENT_OPTIONS = {
  url: true,
  fetch: true,
  retryMs: true,
  token: true,
  ownerId: true,
  agentId: true,
  agentKey: true,
  open: true,
  roles: true,
  profile: true,
  ttlSec: true,
};

/** A server's records, as one agent sees them. */
export class Rcrt {
  readonly #transport: Transport;

  /** Does not connect yet. */
  constructor(options: RcrtOptions) {
    // `options` is undefined where no compiler checks types.
    this.#transport = new Transport(options?.url, options, options?.retryMs, options?.fetch);
    checkOptions(options, CLIENT_OPTIONS);
  }

  /** A token that stays valid for a while, for other programs. */
  async token(): Promise<string> {
    return await this.#transport.tokens.token();
  }

  // Records

  /**
   * Writes a record. If the response is lost, the repetition writes no second one: without an
   * idempotency key the client makes one.
   */
  async createBreadcrumb(
    record: shapes.NewBreadcrumb,
    options: RequestOptions & { idempotencyKey?: string; traceparent?: string } = {},
  ): Promise<shapes.Created> {
    checkOptions(options, { ...REQUEST_OPTIONS, idempotencyKey: true, traceparent: true });
    const { idempotencyKey, traceparent, ...rest } = options;
    const headers = { "idempotency-key": idempotencyKey ?? newKey(), traceparent };
    const created = await this.#transport.json("post", "/breadcrumbs", { ...rest, body: record, headers, again: true });
    // With the client's own key, a replay is a repetition by the client, which does not matter to
    // the caller.
    return { ...created, replayed: (created.replayed ?? false) && idempotencyKey !== undefined };
  }

  /** The short view, as a model reads it: without owner, audit and TTL fields. */
  async getBreadcrumb(id: string, options: RequestOptions = {}): Promise<shapes.BreadcrumbView> {
    return await this.#transport.json("get", "/breadcrumbs/{id}", { ...options, path: { id }, again: true });
  }

  /** The whole record. */
  async getFullBreadcrumb(id: string, options: RequestOptions = {}): Promise<shapes.Breadcrumb> {
    return await this.#transport.json("get", "/breadcrumbs/{id}/full", { ...options, path: { id }, again: true });
  }

  /** All versions, the newest first. */
  async getHistory(id: string, options: RequestOptions = {}): Promise<shapes.BreadcrumbVersion[]> {
    return await this.#transport.json("get", "/breadcrumbs/{id}/history", { ...options, path: { id }, again: true });
  }

  /** Changes the version that was read. Another one is a `version_conflict` and does not change. */
  async updateBreadcrumb(
    id: string,
    version: number,
    changes: shapes.BreadcrumbChanges,
    options: RequestOptions = {},
  ): Promise<shapes.Breadcrumb> {
    const headers = { "if-match": etag(version) };
    return await this.#transport.json("patch", "/breadcrumbs/{id}", { ...options, path: { id }, headers, body: changes });
  }

  /**
   * Reads, changes and writes, and repeats this after a conflict. `undefined` from `change` leaves
   * the record unchanged.
   */
  async changeBreadcrumb(
    id: string,
    change: (record: shapes.Breadcrumb) => shapes.BreadcrumbChanges | undefined | Promise<shapes.BreadcrumbChanges | undefined>,
    options: RequestOptions & { attempts?: number } = {},
  ): Promise<shapes.Breadcrumb> {
    checkOptions(options, { ...REQUEST_OPTIONS, attempts: true });
    const { attempts = 10, ...rest } = options;
    for (let attempt = 1; ; attempt++) {
      const record = await this.getFullBreadcrumb(id, rest);
      const changes = await change(record);
      if (changes === undefined) return record;
      try {
        return await this.updateBreadcrumb(id, record.version, changes, rest);
      } catch (error) {
        const again = error instanceof ProblemError && error.code === "version_conflict" && attempt < attempts;
        if (!again) throw error;
        await pause(backoff(attempt) / 4, options.signal);
      }
    }
  }

  /** Deletes a record. With a version, only if that is the current one. */
  async deleteBreadcrumb(id: string, version?: number, options: RequestOptions = {}): Promise<void> {
    const headers = { "if-match": version === undefined ? undefined : etag(version) };
    await this.#transport.remove("/breadcrumbs/{id}", { ...options, path: { id }, headers });
  }

  /** Newest change first. */
  async listBreadcrumbs(options: ListOptions = {}): Promise<shapes.BreadcrumbListItem[]> {
    checkOptions(options, LIST_OPTIONS);
    const query = { ...selection(options), limit: options.limit, offset: options.offset };
    return await this.#transport.json("get", "/breadcrumbs", { ...common(options), query, again: true });
  }

  /** All records, page by page. */
  async *eachBreadcrumb(options: Omit<ListOptions, "offset"> = {}): AsyncGenerator<shapes.BreadcrumbListItem, void, void> {
    const limit = options.limit ?? 500;
    // A larger page would be cut, and then be taken for the last one.
    if (!(limit >= 1 && limit <= 1000)) throw invalidArgument(`limit must be a number from 1 to 1000; it is ${String(limit)}`);
    // A record that changes meanwhile moves to the front and shifts others to the next page.
    const seen = new Set<string>();
    for (let offset = 0; ; offset += limit) {
      const page = await this.listBreadcrumbs({ ...options, limit, offset });
      for (const item of page) {
        if (!seen.has(item.id)) yield item;
        seen.add(item.id);
      }
      if (page.length < limit) return;
    }
  }

  /** Best match first. If `q` is `undefined`, it searches by `qvec`. */
  async searchBreadcrumbs(q: string | undefined, options: SearchOptions = {}): Promise<shapes.BreadcrumbListItem[]> {
    checkOptions(options, SEARCH_OPTIONS);
    const qvec = options.qvec === undefined ? undefined : asJson("qvec", options.qvec);
    const query = { q, qvec, mode: options.mode, ...selection(options), nn: options.nn };
    return await this.#transport.json("get", "/breadcrumbs/search", { ...common(options), query, again: true });
  }

  // Events

  /**
   * Each event once, in order, across lost connections and restarts of the server. Leave the loop
   * to close it.
   */
  events(options: FollowOptions = {}): AsyncGenerator<EventItem, void, void> {
    return follow(this.#transport, options);
  }

  /** The number of the newest event, 0 without events. */
  async latestEvent(options: RequestOptions = {}): Promise<number> {
    return (await this.#transport.json("get", "/events/latest", { ...options, again: true })).number;
  }

  /**
   * From now on the agent's own streams, including open ones, have only events that match one of
   * its selectors.
   */
  async createSelector(selector: shapes.Selector, options: RequestOptions = {}): Promise<shapes.SelectorSubscription> {
    return await this.#transport.json("post", "/subscriptions/selectors", { ...options, body: selector });
  }

  async listSelectors(options: RequestOptions = {}): Promise<shapes.SelectorSubscription[]> {
    return await this.#transport.json("get", "/subscriptions/selectors", { ...options, again: true });
  }

  /** The selectors of another agent, for curators. */
  async agentSelectors(id: string, options: RequestOptions = {}): Promise<shapes.SelectorSubscription[]> {
    return await this.#transport.json("get", "/agents/{id}/selectors", { ...options, path: { id }, again: true });
  }

  async updateSelector(id: string, selector: shapes.Selector, options: RequestOptions = {}): Promise<shapes.SelectorSubscription> {
    return await this.#transport.json("put", "/subscriptions/selectors/{id}", { ...options, path: { id }, body: selector, again: true });
  }

  async deleteSelector(id: string, options: RequestOptions = {}): Promise<void> {
    await this.#transport.remove("/subscriptions/selectors/{id}", { ...options, path: { id } });
  }

  // Rights

  /** For a curator all of the tenant, for others those on records that they created. */
  async listGrants(options: RequestOptions & { breadcrumbId?: string } = {}): Promise<shapes.AclEntry[]> {
    checkOptions(options, { ...REQUEST_OPTIONS, breadcrumbId: true });
    const { breadcrumbId, ...rest } = options;
    return await this.#transport.json("get", "/acl", { ...rest, query: { breadcrumb_id: breadcrumbId }, again: true });
  }

  /** Opens a record to an agent or a tenant. Returns the grant's id. */
  async grantAccess(grant: shapes.AclChange, options: RequestOptions = {}): Promise<string> {
    return (await this.#transport.json("post", "/acl/grant", { ...options, body: grant, again: true })).id;
  }

  /** Removes actions from the grantee. Returns how many grants changed. */
  async revokeAccess(grant: shapes.AclChange, options: RequestOptions = {}): Promise<number> {
    return (await this.#transport.json("post", "/acl/revoke", { ...options, body: grant, again: true })).rows;
  }

  // Tools

  /** The tools that the agent's profile allows, and those with a missing requirement. */
  async tools(options: ToolsOptions = {}): Promise<shapes.Catalog> {
    const { query, rest } = wanted(options);
    return (await this.#transport.json("get", "/tools", { ...rest, query, again: true })) as shapes.Catalog;
  }

  /** The same in the format of a model's API. */
  async toolsFor(format: "openai", options?: ToolsOptions): Promise<models.OpenAiTool[]>;
  async toolsFor(format: "openai-responses", options?: ToolsOptions): Promise<models.OpenAiResponsesTool[]>;
  async toolsFor(format: "anthropic", options?: ToolsOptions): Promise<models.AnthropicTool[]>;
  async toolsFor(format: "mcp", options?: ToolsOptions): Promise<models.McpTools>;
  async toolsFor(format: models.ModelFormat, options: ToolsOptions = {}): Promise<unknown> {
    const { query, rest } = wanted(options);
    const found = this.#transport.parse(await this.#transport.exchange("get", "/tools", { ...rest, query: { format, ...query }, again: true }));
    const tools: unknown = format === "mcp" ? (found as Partial<models.McpTools> | null)?.tools : found;
    const isTools = Array.isArray(tools) && tools.every((tool) => typeof tool === "object" && tool !== null);
    if (!isTools) throw foreign(this.#transport.base, `it has no tools in the format ${format}`, found);
    return found;
  }

  /**
   * The tools that fit a text, the best first, each with a score from 0 to 1. `hints` are the two
   * services that fit best, none for a text of one or two words.
   */
  async findTools(text: string, options: RequestOptions & { limit?: number; profile?: shapes.Profile } = {}): Promise<shapes.RankedCatalog> {
    checkOptions(options, { ...REQUEST_OPTIONS, limit: true, profile: true });
    const { limit, profile, ...rest } = options;
    const query = { for: text, limit, profile };
    return (await this.#transport.json("get", "/tools", { ...rest, query, again: true })) as shapes.RankedCatalog;
  }

  async tool(name: string, options: RequestOptions = {}): Promise<shapes.CatalogEntry> {
    return (await this.#transport.json("get", "/tools/{name}", { ...options, path: { name }, again: true })) as shapes.CatalogEntry;
  }

  /**
   * Calls a tool and returns its output, or throws {@link ToolError}. If the output is larger than
   * the caller accepts, it is a {@link shapes.LargeResult} (see `isLargeResult` and `parts`).
   */
  async call(tool: string, input: unknown = {}, options: InvokeOptions = {}): Promise<unknown> {
    const response = await this.invoke(tool, input, options);
    if (response.status !== "success") throw new ToolError(response);
    return response.output;
  }

  /**
   * Calls a tool and returns its whole response, which can be a failure. Broken connections do not
   * cause a second call.
   */
  async invoke(tool: string, input: unknown = {}, options: InvokeOptions = {}): Promise<shapes.ToolResponse> {
    return await invoke(this.#transport, tool, input, options);
  }

  /**
   * Calls a tool as a model asked for it: one of a message's `tool_calls` (`openai`), a
   * `function_call` item (`openai-responses`, or `openai`), a `tool_use` block (`anthropic`), or the
   * params of `tools/call` (`mcp`). Returns the message that the model expects, also if there is no
   * such tool, the tool failed or the model's arguments are invalid. After `waitMs` it throws
   * {@link StillRunning}, as `call` does; a shorter `deadlineMs` makes that a message too.
   */
  async callFor(format: "openai", call: models.OpenAiCall, options?: InvokeOptions): Promise<models.OpenAiMessage>;
  async callFor(format: "openai" | "openai-responses", call: models.OpenAiItemCall, options?: InvokeOptions): Promise<models.OpenAiItem>;
  async callFor(format: "anthropic", call: models.AnthropicCall, options?: InvokeOptions): Promise<models.AnthropicBlock>;
  async callFor(format: "mcp", call: models.McpCall, options?: InvokeOptions): Promise<models.McpResult>;
  async callFor(format: models.ModelFormat, call: models.ModelCall, options: InvokeOptions = {}): Promise<unknown> {
    return await invokeFor(this.#transport, format, call, options);
  }

  /**
   * The parts of a large result, in order. Those of a text are strings that form the text; those of
   * JSON are documents, each with a part of the whole one and everything that encloses it.
   */
  parts(large: shapes.LargeResult, options: InvokeOptions = {}): AsyncGenerator<unknown, void, void> {
    return parts(this.#transport, large, options);
  }

  // Making tools

  /** Creates or updates a tool. It is written if the validators and the examples find no error. */
  async createTool(spec: authoring.ToolSpec, options: authoring.CreateToolOptions = {}): Promise<authoring.ToolCreation> {
    const { input, rest } = authoring.creation(spec, options);
    return (await this.call("create_tool", input, rest)) as authoring.ToolCreation;
  }

  /**
   * TypeScript declarations. Of a tool: `Input`, `Output` and `Context`. Without one, what all tools
   * share: the globals of the sandbox, and the namespace `tools`.
   */
  async toolTypes(spec?: authoring.ToolSpec, options: RequestOptions = {}): Promise<string> {
    const body = spec === undefined ? {} : { tool_spec: spec };
    return (await this.#transport.json("post", "/tools/types", { ...options, body, again: true })).types;
  }

  /** What the validators find in a tool. Nothing is written. */
  async validateTool(spec: authoring.ToolSpec, options: RequestOptions = {}): Promise<shapes.ToolValidation> {
    return await this.#transport.json("post", "/tools/validate", { ...options, body: { tool_spec: spec }, again: true });
  }

  /** Validates a tool and runs its examples in the sandbox. No tool is written. */
  async testTool(spec: authoring.ToolSpec, options: InvokeOptions = {}): Promise<authoring.ToolTest> {
    const response = await authoring.test(this.#transport, spec, options);
    if (response.status !== "success") throw new ToolError(response);
    return response.output as authoring.ToolTest;
  }

  /** Publishes a draft; for curators. `version` is the version of its record that was reviewed. */
  async publishTool(name: string, draft: { tool_id?: string; version?: number } = {}, options: RequestOptions = {}): Promise<shapes.PublishedTool> {
    return await this.#transport.json("post", "/tools/{name}/publish", { ...options, path: { name }, body: draft });
  }

  // Calls

  /** The state of a request. */
  async getCall(requestId: string, options: RequestOptions = {}): Promise<shapes.CallDetails> {
    const path = { request_id: requestId };
    return await this.#transport.json("get", "/calls/{request_id}", { ...options, path, again: true });
  }

  async cancelCall(requestId: string, options: RequestOptions = {}): Promise<shapes.Call> {
    const path = { request_id: requestId };
    return await this.#transport.json("post", "/calls/{request_id}/cancel", { ...options, path, again: true });
  }

  /** The live runners with their slots and calls, the oldest first; for curators. */
  async runners(options: RequestOptions = {}): Promise<shapes.RunnerInfo[]> {
    return await this.#transport.json("get", "/runners", { ...options, again: true });
  }

  /** Asks a live runner to take no more calls, or to take calls again; for curators. */
  async drainRunner(id: string, drain: boolean, options: RequestOptions = {}): Promise<shapes.RunnerInfo> {
    return await this.#transport.json("post", "/runners/{id}/drain", { ...options, path: { id }, body: { drain }, again: true });
  }

  // For runners

  /**
   * Not repeated if the response is lost: those leases expire by themselves, and a second claim
   * would take more calls.
   */
  async claimCalls(wanted: shapes.ClaimRequest, options: RequestOptions = {}): Promise<shapes.Claim[]> {
    return await this.#transport.json("post", "/calls/claim", { ...options, body: wanted });
  }

  /** Reports that a runner is live. Returns all live runners of the tenant. */
  async reportRunner(report: shapes.RunnerReport, options: RequestOptions = {}): Promise<shapes.ReportReply> {
    return await this.#transport.json("post", "/runners", { ...options, body: report, again: true });
  }

  async startCall(lease: shapes.Lease, maxAttempts: number, options: RequestOptions = {}): Promise<void> {
    await this.#transport.json("post", "/calls/start", { ...options, body: { lease, max_attempts: maxAttempts }, again: true });
  }

  async heartbeat(leases: shapes.Lease[], leaseMs: number, options: RequestOptions = {}): Promise<shapes.LeaseState[]> {
    return await this.#transport.json("post", "/calls/heartbeat", { ...options, body: { leases, lease_ms: leaseMs }, again: true });
  }

  /** Writes the response and finishes the call. Returns the response's id. */
  async completeCall(lease: shapes.Lease, response: shapes.NewBreadcrumb, options: RequestOptions = {}): Promise<string> {
    return (await this.#transport.json("post", "/calls/complete", { ...options, body: { lease, response } })).id;
  }

  async releaseCall(lease: shapes.Lease, release: shapes.Release, options: RequestOptions = {}): Promise<void> {
    await this.#transport.json("post", "/calls/release", { ...options, body: { lease, release } });
  }

  // Secrets

  async createSecret(secret: shapes.NewSecret, options: RequestOptions = {}): Promise<shapes.SecretInfo> {
    return await this.#transport.json("post", "/secrets", { ...options, body: secret });
  }

  /** Without their values. */
  async listSecrets(options: RequestOptions = {}): Promise<shapes.SecretInfo[]> {
    return await this.#transport.json("get", "/secrets", { ...options, again: true });
  }

  async updateSecret(id: string, changes: shapes.SecretChanges, options: RequestOptions = {}): Promise<shapes.SecretInfo> {
    // A new value makes a new version each time. Everything else can be repeated.
    const again = changes?.value === undefined || changes.value === null;
    return await this.#transport.json("put", "/secrets/{id}", { ...options, path: { id }, body: changes, again });
  }

  async deleteSecret(id: string, options: RequestOptions = {}): Promise<void> {
    await this.#transport.remove("/secrets/{id}", { ...options, path: { id } });
  }

  /** The value. The audit log records who requested it, when and why. */
  async decryptSecret(id: string, reason: string, options: RequestOptions & { toolId?: string } = {}): Promise<string> {
    checkOptions(options, { ...REQUEST_OPTIONS, toolId: true });
    const { toolId, ...rest } = options;
    const body = toolId === undefined ? { reason } : { reason, tool_id: toolId };
    return (await this.#transport.json("post", "/secrets/{id}/decrypt", { ...rest, path: { id }, body, again: true })).value;
  }

  /** Lets a tool, by its record or its name, use a secret. */
  async grantSecret(id: string, grant: shapes.NewGrant, options: RequestOptions = {}): Promise<shapes.SecretInfo> {
    return await this.#transport.json("post", "/secrets/{id}/grants", { ...options, path: { id }, body: grant, again: true });
  }

  async revokeSecret(id: string, toolId: string, options: RequestOptions = {}): Promise<shapes.SecretInfo> {
    return await this.#transport.json("delete", "/secrets/{id}/grants/{tool_id}", { ...options, path: { id, tool_id: toolId } });
  }

  // Agents

  /** The key is shown only this once. */
  async createAgent(agent: shapes.NewAgent, options: RequestOptions = {}): Promise<shapes.NewAgentKey> {
    return await this.#transport.json("post", "/agents", { ...options, body: agent });
  }

  /**
   * Creates an agent with an id of the caller's choice (its key is in the response), or changes
   * one.
   */
  async putAgent(id: string, agent: shapes.AgentRegistration, options: RequestOptions = {}): Promise<shapes.Registered> {
    return await this.#transport.json("post", "/agents/{id}", { ...options, path: { id }, body: agent });
  }

  async listAgents(options: RequestOptions = {}): Promise<shapes.AgentInfo[]> {
    return await this.#transport.json("get", "/agents", { ...options, again: true });
  }

  async getAgent(id: string, options: RequestOptions = {}): Promise<shapes.AgentInfo> {
    return await this.#transport.json("get", "/agents/{id}", { ...options, path: { id }, again: true });
  }

  /** The old key is invalid from now on; tokens stay valid. The new key is shown only this once. */
  async rotateAgentKey(id: string, options: RequestOptions = {}): Promise<shapes.NewAgentKey> {
    return await this.#transport.json("post", "/agents/{id}/rotate-key", { ...options, path: { id } });
  }

  async deleteAgent(id: string, options: RequestOptions = {}): Promise<void> {
    await this.#transport.remove("/agents/{id}", { ...options, path: { id } });
  }

  // Tenants

  /** For the operator all of them, for others their own. */
  async listTenants(options: RequestOptions = {}): Promise<shapes.TenantInfo[]> {
    return await this.#transport.json("get", "/tenants", { ...options, again: true });
  }

  async getTenant(id: string, options: RequestOptions = {}): Promise<shapes.TenantInfo> {
    return await this.#transport.json("get", "/tenants/{id}", { ...options, path: { id }, again: true });
  }

  /** Creates a tenant (its first agent's key is in the response), or renames it. */
  async putTenant(id: string, name: string, options: RequestOptions = {}): Promise<shapes.TenantDone> {
    return await this.#transport.json("put", "/tenants/{id}", { ...options, path: { id }, body: { name } });
  }

  async deleteTenant(id: string, options: RequestOptions = {}): Promise<void> {
    await this.#transport.remove("/tenants/{id}", { ...options, path: { id } });
  }

  // Webhooks

  /** Each event that the agent can see is posted to the URL, signed. */
  async createWebhook(agentId: string, webhook: shapes.NewWebhook, options: RequestOptions = {}): Promise<shapes.WebhookInfo> {
    return await this.#transport.json("post", "/agents/{id}/webhooks", { ...options, path: { id: agentId }, body: webhook });
  }

  async listWebhooks(agentId: string, options: RequestOptions = {}): Promise<shapes.WebhookInfo[]> {
    return await this.#transport.json("get", "/agents/{id}/webhooks", { ...options, path: { id: agentId }, again: true });
  }

  async deleteWebhook(agentId: string, id: string, options: RequestOptions = {}): Promise<void> {
    await this.#transport.remove("/agents/{id}/webhooks/{wid}", { ...options, path: { id: agentId, wid: id } });
  }

  async pauseWebhook(agentId: string, id: string, options: RequestOptions = {}): Promise<shapes.WebhookInfo> {
    const path = { id: agentId, wid: id };
    return await this.#transport.json("post", "/agents/{id}/webhooks/{wid}/pause", { ...options, path, again: true });
  }

  async resumeWebhook(agentId: string, id: string, options: RequestOptions = {}): Promise<shapes.WebhookInfo> {
    const path = { id: agentId, wid: id };
    return await this.#transport.json("post", "/agents/{id}/webhooks/{wid}/resume", { ...options, path, again: true });
  }

  /** The signing secret of the agent's deliveries. */
  async setWebhookSecret(agentId: string, secret: string, options: RequestOptions = {}): Promise<void> {
    await this.#transport.json("post", "/agents/{id}/secret", { ...options, path: { id: agentId }, body: { secret }, again: true });
  }

  /** Deliveries that were given up, the newest first. After the last one, pages are empty. */
  async listDeadLetters(options: RequestOptions & { limit?: number; offset?: number } = {}): Promise<shapes.DeadLetter[]> {
    checkOptions(options, { ...REQUEST_OPTIONS, limit: true, offset: true });
    const { limit, offset, ...rest } = options;
    return await this.#transport.json("get", "/dlq", { ...rest, query: { limit, offset }, again: true });
  }

  async retryDeadLetter(id: string, options: RequestOptions = {}): Promise<void> {
    await this.#transport.json("post", "/dlq/{id}/retry", { ...options, path: { id } });
  }

  async deleteDeadLetter(id: string, options: RequestOptions = {}): Promise<void> {
    await this.#transport.remove("/dlq/{id}", { ...options, path: { id } });
  }

  /** Deletes all of them. Returns how many there were. */
  async deleteDeadLetters(options: RequestOptions = {}): Promise<number> {
    return (await this.#transport.json("delete", "/dlq", options)).deleted;
  }

  // Operations

  /**
   * Revokes tokens before they expire: `{}` the client's own, `{ all: true }` all of its agent so
   * far.
   */
  async revokeTokens(request: shapes.RevokeTokens, options: RequestOptions = {}): Promise<shapes.RevokedTokens> {
    return await this.#transport.json("post", "/auth/revoke", { ...options, body: request });
  }

  /**
   * Tokens that have not expired, newest first: of all agents for a curator, else the agent's own.
   * `before` is the `next` of the page before.
   */
  async listTokens(query: shapes.TokenQuery = {}, options: RequestOptions = {}): Promise<shapes.TokenPage> {
    return await this.#transport.json("get", "/auth/tokens", { ...options, query: { ...query }, again: true });
  }

  /**
   * A one-time ticket for an `EventSource`, which cannot send headers: `/events/stream?ticket=…`.
   */
  async streamTicket(options: RequestOptions = {}): Promise<shapes.StreamTicket> {
    return await this.#transport.json("post", "/events/ticket", options);
  }

  /** Calls, newest first. `before` is the `next` of the page before; a page can be empty and have one. */
  async calls(query: shapes.CallQuery = {}, options: RequestOptions = {}): Promise<shapes.CallPage> {
    return await this.#transport.json("get", "/calls", { ...options, query: { ...query }, again: true });
  }

  /** Counts and durations of the calls that finished in a window such as `15m` or `7d`; for curators. */
  async callStats(query: { tool?: string; window?: string } = {}, options: RequestOptions = {}): Promise<shapes.CallStats> {
    return await this.#transport.json("get", "/calls/stats", { ...options, query: { ...query }, again: true });
  }

  /**
   * Changes of agents, tokens, grants, secrets and tools, and uses of secrets, newest first; for
   * curators. `before` is the `next` of the page before.
   */
  async auditLog(query: shapes.AuditQuery = {}, options: RequestOptions = {}): Promise<shapes.AuditPage> {
    return await this.#transport.json("get", "/audit", { ...options, query: { ...query }, again: true });
  }

  /**
   * The requests of tools and webhooks to other servers, newest first; for curators. `before` is
   * the `next` of the page before.
   */
  async egressLog(query: shapes.EgressQuery = {}, options: RequestOptions = {}): Promise<shapes.EgressPage> {
    return await this.#transport.json("get", "/audit/egress", { ...options, query: { ...query }, again: true });
  }

  /** The state of the deletion of expired records. */
  async hygieneStats(options: RequestOptions = {}): Promise<shapes.HygieneReport> {
    return await this.#transport.json("get", "/hygiene/stats", { ...options, again: true });
  }

  /** Deletes expired records now. */
  async runHygiene(options: RequestOptions = {}): Promise<shapes.HygieneRunReport> {
    return await this.#transport.json("post", "/hygiene/run", { ...options, again: true });
  }

  /**
   * Checks the server and its database. Throws {@link ProblemError} `unavailable` if they are
   * unhealthy.
   */
  async health(options: RequestOptions = {}): Promise<shapes.Health> {
    return await this.#transport.json("get", "/health", { ...options, anonymous: true });
  }
}

function common({ signal, timeoutMs }: RequestOptions): RequestOptions {
  return { ...(signal === undefined ? {} : { signal }), ...(timeoutMs === undefined ? {} : { timeoutMs }) };
}

function wanted(options: ToolsOptions) {
  checkOptions(options, TOOLS_OPTIONS);
  const { profile, tool, tag, ...rest } = options;
  return { query: { profile, tool: several(tool), tag: several(tag) }, rest };
}

function selection(options: Omit<ListOptions, "limit" | "offset">) {
  return {
    tag: several(options.tag),
    any_tag: several(options.anyTag),
    schema_name: options.schemaName,
    context_match: options.contextMatch === undefined ? undefined : asJson("contextMatch", options.contextMatch),
    exclude_runtime: options.excludeRuntime,
    include_context: options.includeContext,
  };
}

function several(tags: string | string[] | undefined): string[] | undefined {
  return typeof tags === "string" ? [tags] : tags;
}
