/** What led to a record, and what it led to. */
import type { Breadcrumb, BreadcrumbListItem } from "@rcrt/client";
import { agentNames } from "./agents.svelte";
import { shortId } from "./format";
import { to } from "./router.svelte";
import { session } from "./session.svelte";

export interface Related {
  key: string;
  /** How it is related, in words. */
  how: string;
  name: string;
  kind: string;
  href: string;
}

export interface Relations {
  before: Related[];
  after: Related[];
}

const MOST = 12;
const text = (value: unknown) => (typeof value === "string" && value !== "" ? value : undefined);

/** The records that name this one in this field. */
async function naming(schemaName: string, path: string, id: string): Promise<BreadcrumbListItem[]> {
  return await session.client.listBreadcrumbs({ schemaName, contextMatch: [{ path, op: "eq", value: id }], limit: MOST });
}

function node(record: { id: string; title: string; schema_name?: string | null }, how: string): Related {
  const isCall = record.schema_name === "tool.request.v1";
  return { key: `${how} ${record.id}`, how, name: record.title, kind: record.schema_name ?? "record", href: to([isCall ? "calls" : "records", record.id]) };
}

export async function relationsOf(record: Breadcrumb): Promise<Relations> {
  const { client } = session;
  const { context } = record;
  const metadata = (context["metadata"] ?? {}) as Record<string, unknown>;
  const before: Related[] = [];
  if (record.created_by) before.push({ key: "agent", how: "written by", name: agentNames.of(record.created_by), kind: "agent", href: to(["agents", record.created_by]) });
  for (const tag of record.tags) {
    const tool = /^triggered:(.+):(\d+)$/.exec(tag);
    if (tool?.[1] !== undefined && Number(tool[2]) === record.version) before.push({ key: tag, how: "written by a triggered call of", name: tool[1], kind: "tool", href: to(["tools", tool[1]]) });
  }
  const named: [string, unknown][] = [
    ["triggered by", (context["trigger_event"] as Record<string, unknown> | undefined)?.["breadcrumb_id"]],
    ["asked for by the call", context["parent"]],
    ["fired by the schedule", (context["schedule"] as Record<string, unknown> | undefined)?.["schedule_id"] ?? context["schedule_id"]],
    ["about the call", metadata["request"] ?? context["request"] ?? context["call"]],
    ["about the tool", metadata["tool_id"] ?? context["tool_id"]],
    ["about the server", context["server_id"]],
  ];
  const reads = named.flatMap(([how, value]) => {
    const id = text(value);
    return id === undefined || id === record.id ? [] : [client.getFullBreadcrumb(id).then((found) => node(found, how), () => ({ key: `${how} ${id}`, how, name: shortId(id), kind: "deleted, or not readable", href: to(["records", id]) }))];
  });
  const isTool = /^tool\.(code\.)?v1$/.test(record.schema_name ?? "");
  const isCall = record.schema_name === "tool.request.v1";
  const lists: [string, Promise<BreadcrumbListItem[]>][] = [["triggered the call", naming("tool.request.v1", "$.trigger_event.breadcrumb_id", record.id)]];
  if (isCall) lists.push(["asked for the call", naming("tool.request.v1", "$.parent", record.id)], ["answered with", naming("tool.response.v1", "$.metadata.request", record.id)], ["wrote the log", naming("tool.log.v1", "$.request", record.id)], ["made the schedule", naming("schedule.v1", "$.request", record.id)]);
  if (isTool) lists.push(["was rejected", naming("tool.error.v1", "$.tool_id", record.id)], ["would change to", naming("mcp.change.v1", "$.tool_id", record.id)]);
  if (record.schema_name === "schedule.v1") lists.push(["fired the call", naming("tool.request.v1", "$.schedule.schedule_id", record.id)], ["fired", naming("schedule.fired.v1", "$.schedule_id", record.id)]);
  if (record.schema_name === "mcp.server.v1") lists.push(["has the state", naming("mcp.status.v1", "$.server_id", record.id)]);
  const after = await Promise.all(lists.map(async ([how, found]) => (await found).map((one) => node(one, how))));
  return { before: [...before, ...(await Promise.all(reads))].slice(0, MOST), after: after.flat().slice(0, MOST) };
}
