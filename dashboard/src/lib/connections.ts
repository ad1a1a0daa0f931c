/** MCP servers and agents of other systems, as their records describe them. */
import { RcrtError, type BreadcrumbListItem } from "@rcrt/client";
import { session } from "./session.svelte";

export type Transport =
  | { type: "stdio"; command: string; args?: string[]; env?: Record<string, string>; network?: boolean }
  | { type: "http"; url: string; headers?: Record<string, string>; auth?: { type: "bearer"; secret: string } };

export interface McpConfig {
  name: string;
  description?: string;
  transport: Transport;
  enabled?: boolean;
  allowed_tools?: string[];
  denied_tools?: string[];
  trust_annotations?: boolean;
}

export interface McpStatus {
  server: string;
  server_id: string;
  state: "connected" | "error" | "disabled";
  error?: string;
  protocol_version?: string;
  implementation?: string;
  instructions?: string;
  tools: string[];
  waiting?: string[];
  refused?: { tool: string; reason: string }[];
}

/** A changed definition of a tool, which waits. */
export interface McpChange {
  server: string;
  tool: string;
  name: string;
  tool_id: string;
  accepted_hash: string;
  definition_hash: string;
  definition: unknown;
  proposed: Record<string, unknown>;
}

export interface McpServer {
  record: BreadcrumbListItem;
  config: McpConfig;
  status: McpStatus | undefined;
  changes: { record: BreadcrumbListItem; change: McpChange }[];
}

export interface A2aCard {
  card_hash: string;
  description?: string;
  version?: string;
  interface?: { url: string; binding: string };
  skills?: { id?: string; name?: string; description?: string; tags?: string[] }[];
}

export interface A2aAgent extends A2aCard {
  name: string;
  card_url: string;
  well_known?: boolean;
  auth?: { secret: string; header: string };
  last_seen?: string;
  problem?: string;
  pending?: A2aCard;
  accepted_hash?: string;
}

const MOST = 1000;

async function list<T>(schemaName: string): Promise<{ record: BreadcrumbListItem; context: T }[]> {
  const records = await session.client.listBreadcrumbs({ schemaName, includeContext: true, limit: MOST });
  return records.flatMap((record) => (record.context === undefined ? [] : [{ record, context: record.context as unknown as T }]));
}

export async function mcpServers(): Promise<McpServer[]> {
  const [servers, states, changes] = await Promise.all([list<McpConfig>("mcp.server.v1"), list<McpStatus>("mcp.status.v1"), list<McpChange>("mcp.change.v1")]);
  return servers
    .map(({ record, context: config }) => ({
      record,
      config,
      status: states.find(({ context }) => context.server_id === record.id)?.context,
      changes: changes.filter(({ context }) => context.server === config.name).map(({ record: own, context: change }) => ({ record: own, change })),
    }))
    .sort((a, b) => a.config.name.localeCompare(b.config.name));
}

export async function a2aAgents(): Promise<{ record: BreadcrumbListItem; agent: A2aAgent }[]> {
  const agents = await list<A2aAgent>("a2a.agent.v1");
  return agents.map(({ record, context }) => ({ record, agent: withAccepted(context) })).sort((a, b) => a.agent.name.localeCompare(b.agent.name));
}

/** An accepted card counts, also before the tools have written it to its place. */
function withAccepted(agent: A2aAgent): A2aAgent {
  const { pending, ...rest } = agent;
  return pending !== undefined && pending.card_hash === agent.accepted_hash ? { ...rest, ...pending } : agent;
}

/** What is run or connected to. */
export function runs(transport: Transport): string {
  return transport.type === "http" ? transport.url : [transport.command, ...(transport.args ?? [])].join(" ");
}

/** The names of the secrets in its environment, headers and authentication. */
export function secretsOf(transport: Transport): string[] {
  const texts = Object.values((transport.type === "http" ? transport.headers : transport.env) ?? {});
  const named = texts.flatMap((text) => [...text.matchAll(/\$\{([A-Za-z0-9_.-]+)\}/g)].map((match) => match[1] ?? ""));
  return [...new Set([...named, ...(transport.type === "http" && transport.auth ? [transport.auth.secret] : [])])];
}

/** The same steps as `rcrt mcp accept`: only the change that was shown is accepted. */
export async function acceptChange(shown: BreadcrumbListItem, change: McpChange): Promise<void> {
  const { client } = session;
  const again = new Error(`The definition of ${change.name} has changed again. Look at the new difference, and accept that.`);
  const [tool, present] = await Promise.all([client.getFullBreadcrumb(change.tool_id), client.getFullBreadcrumb(shown.id)]);
  const accepted = (tool.context["implementation"] as { definition_hash?: string } | undefined)?.definition_hash;
  if (accepted !== change.accepted_hash || present.version !== shown.version) throw again;
  await client.updateBreadcrumb(tool.id, tool.version, { context: change.proposed, schema_name: "tool.v1" });
  // A runner that has seen the accepted definition deletes the change too.
  await client.deleteBreadcrumb(shown.id).catch((error: unknown) => {
    if (!(error instanceof RcrtError && error.code === "not_found")) throw error;
  });
}

/** Makes the changed card that was shown count. */
export async function acceptCard(shown: BreadcrumbListItem, hash: string): Promise<void> {
  const record = await session.client.getFullBreadcrumb(shown.id);
  const pending = record.context["pending"] as A2aCard | undefined;
  if (pending?.card_hash !== hash) throw new Error("The card has changed again. Look at the new difference, and accept that.");
  await session.client.updateBreadcrumb(record.id, record.version, { context: { ...record.context, accepted_hash: hash } });
}
