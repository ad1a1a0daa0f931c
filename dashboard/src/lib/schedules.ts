/** Scheduled tasks. */
import type { BreadcrumbListItem } from "@rcrt/client";
import { session } from "./session.svelte";

export interface Schedule {
  name: string;
  cron: string;
  timezone?: string;
  description?: string;
  run_once?: boolean;
  tool?: string;
  input?: unknown;
  session?: string;
  made_by?: string;
  status: "active" | "paused" | "done" | "cancelled";
  state?: { next_fire?: string | null; last_fire?: string | null; fires?: number; error?: string };
}

export type ScheduleItem = BreadcrumbListItem & { schedule: Schedule };

export async function listSchedules(): Promise<ScheduleItem[]> {
  const records = await session.client.listBreadcrumbs({ schemaName: "schedule.v1", includeContext: true, limit: 500 });
  const items = records.flatMap((record) => (record.context === undefined ? [] : [{ ...record, schedule: record.context as unknown as Schedule }]));
  const next = (item: ScheduleItem) => Date.parse(item.schedule.state?.next_fire ?? "9999-01-01");
  return items.sort((a, b) => next(a) - next(b));
}

/** The next times of each active task, which only the scheduler's own tool computes. */
export async function nextFires(): Promise<Map<string, string[]>> {
  const listed = (await session.client.call("list_scheduled_tasks", {})) as { tasks: { name: string; next_fires?: { at: string }[] }[] };
  return new Map(listed.tasks.map((task) => [task.name, (task.next_fires ?? []).map((fire) => fire.at)]));
}

/** A paused task does not fire. When it is resumed, its next time is computed from then. */
export async function setPaused(item: ScheduleItem, paused: boolean): Promise<void> {
  const record = await session.client.getFullBreadcrumb(item.id);
  const state = { ...(record.context["state"] as object | undefined), basis: null, next_fire: null, firing: null };
  await session.client.updateBreadcrumb(record.id, record.version, { context: { ...record.context, status: paused ? "paused" : "active", state } });
}

/** Does now what a fire does, as the agent that is signed in. Returns the id of what was written. */
export async function fireNow(item: ScheduleItem): Promise<{ id: string; isCall: boolean }> {
  const { schedule } = item;
  const about = { schedule_id: item.id, name: schedule.name, description: schedule.description ?? "", scheduled_for: new Date().toISOString(), catch_up: false, missed: 0 };
  const tags = [`schedule:${schedule.name}`];
  const record =
    schedule.tool === undefined
      ? { title: `Scheduled task ${schedule.name}`, schema_name: "schedule.fired.v1", tags: ["schedule-fired", ...tags], context: { ...about, timestamp: about.scheduled_for } }
      : {
          title: `Call ${schedule.tool}`,
          schema_name: "tool.request.v1",
          tags: ["tool:request", ...tags],
          context: { tool: schedule.tool, input: schedule.input ?? {}, schedule: about, ...(schedule.session === undefined ? {} : { session: schedule.session }) },
        };
  const { id } = await session.client.createBreadcrumb(record);
  return { id, isCall: schedule.tool !== undefined };
}
