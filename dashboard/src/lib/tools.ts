/** Tools as the screens show them: offered, waiting, rejected, or a draft. */
import type { Breadcrumb, Catalog, CatalogEntry } from "@rcrt/client";
import { session } from "./session.svelte";

export interface ToolError {
  tool?: string | null;
  tool_id: string;
  version: number;
  running_version?: number | null;
  errors: { field: string; message: string; rule?: string; line?: number; column?: number }[];
}

export type ToolState = "offered" | "waiting" | "rejected" | "draft" | "deprecated";

export interface ListedTool {
  name: string;
  source: string;
  state: ToolState;
  description: string;
  toolId: string;
  tags: string[];
  /** Why it is not offered. */
  why: string[];
}

export async function listTools(): Promise<ListedTool[]> {
  const { client, can } = session;
  const [catalog, errors, drafts] = await Promise.all([
    client.tools(),
    can.readRecords ? client.listBreadcrumbs({ schemaName: "tool.error.v1", includeContext: true, limit: 1000 }) : [],
    can.readRecords ? client.listBreadcrumbs({ tag: "tool:draft", limit: 1000 }) : [],
  ]);
  const tools = fromCatalog(catalog);
  for (const item of errors) {
    const error = item.context as unknown as ToolError;
    const why = error.errors.map(({ field, message }) => (field === "" ? message : `${field}: ${message}`));
    const known = tools.find((tool) => tool.toolId === error.tool_id);
    if (known !== undefined) {
      // An older version is offered; the newest one was rejected.
      known.state = "rejected";
      known.why = why;
    } else {
      tools.push({ name: error.tool ?? item.title, source: "", state: "rejected", description: "", toolId: error.tool_id, tags: item.tags, why });
    }
  }
  for (const item of drafts) {
    const name = item.tags.find((tag) => /^tool:(?!draft$|error$)/.test(tag))?.slice("tool:".length) ?? item.title;
    if (tools.some((tool) => tool.toolId === item.id)) continue;
    tools.push({ name, source: "sandbox", state: "draft", description: item.title, toolId: item.id, tags: item.tags, why: ["Only its author can call it, until a curator publishes it."] });
  }
  return tools.sort((a, b) => a.name.localeCompare(b.name));
}

function fromCatalog(catalog: Catalog): ListedTool[] {
  return [
    ...catalog.tools.map(
      (tool): ListedTool => ({
        name: tool.name,
        source: tool.source,
        state: tool.deprecated == null ? "offered" : "deprecated",
        description: tool.description ?? "",
        toolId: tool.tool_id,
        tags: tool.tags ?? [],
        why: tool.deprecated == null ? [] : [`Deprecated since ${tool.deprecated.since}${tool.deprecated.use == null ? "" : `; use ${tool.deprecated.use}`}.`],
      }),
    ),
    ...catalog.waiting.map(
      (tool): ListedTool => ({ name: tool.name, source: tool.source, state: "waiting", description: "", toolId: tool.tool_id, tags: tool.tags ?? [], why: tool.missing_requirements }),
    ),
  ];
}

/** A tool by its name: its catalog entry if it has one, and its record if it can be read. */
export async function readTool(name: string): Promise<{ entry?: CatalogEntry; record?: Breadcrumb; error?: ToolError }> {
  const { client, can } = session;
  let entry: CatalogEntry | undefined;
  let missing: unknown;
  try {
    entry = await client.tool(name);
  } catch (error) {
    missing = error;
  }
  if (!can.readRecords) {
    if (entry === undefined) throw missing;
    return { entry };
  }
  const errors = await client.listBreadcrumbs({ schemaName: "tool.error.v1", tag: `tool:${name}`, includeContext: true, limit: 10 });
  const found = errors[0]?.context as unknown as ToolError | undefined;
  const drafts = entry === undefined && found === undefined ? await client.listBreadcrumbs({ tag: ["tool:draft", `tool:${name}`], limit: 1 }) : [];
  const id = entry?.tool_id ?? found?.tool_id ?? drafts[0]?.id;
  if (id === undefined) throw missing;
  const record = await client.getFullBreadcrumb(id).catch((error: unknown) => {
    // A tool of another agent that is offered but private.
    if (entry === undefined) throw error;
    return undefined;
  });
  return { ...(entry === undefined ? {} : { entry }), ...(record === undefined ? {} : { record }), ...(found === undefined ? {} : { error: found }) };
}

/** What a tool may do, in words. */
export function permissionsOf(context: Record<string, unknown> | undefined, source: string): string[] {
  if (context === undefined) return [];
  const permissions = (context["permissions"] ?? {}) as Record<string, unknown>;
  const net = permissions["net"];
  const words: string[] = [];
  if (net === true) words.push("It can reach every public host.");
  else if (Array.isArray(net) && net.length > 0) words.push(`It can reach ${net.map(String).join(", ")}.`);
  else if (source === "sandbox") words.push("It cannot reach the network.");
  if (permissions["hrtime"] === true) words.push("It has a precise clock.");
  const secrets = Array.isArray(context["required_secrets"]) ? context["required_secrets"].map(String) : [];
  if (secrets.length > 0) words.push(`It needs the ${secrets.length === 1 ? "secret" : "secrets"} ${secrets.join(", ")}, granted to it.`);
  if (source === "sandbox") words.push("It runs in a sandbox: no files, no programs, no environment.");
  if (source === "native") words.push("It is a part of the program; its rights are those that the operator set.");
  return words;
}

/** The secret that a reason of a waiting tool says is missing, not granted, or bound to no host. */
export function lackedSecret(reason: string): string | undefined {
  return /^the secret "([^"]+)" (?:does not exist|is not granted|is bound to no host)/.exec(reason)?.[1];
}
