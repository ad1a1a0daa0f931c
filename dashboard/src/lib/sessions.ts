/** The sessions (conversations) of calls. A session is what its calls name, so it has no record. */
import type { CallSummary } from "@rcrt/client";

export interface SessionSummary {
  name: string;
  calls: number;
  failed: number;
  /** Those that have not finished. */
  open: number;
  /** The tools, the newest first. */
  tools: string[];
  agents: string[];
  /** Of the first and the last of these calls, in milliseconds since 1970. */
  first: number;
  last: number;
}

/** The sessions of these calls, the one with the newest call first. */
export function sessionsOf(calls: Iterable<CallSummary>): SessionSummary[] {
  const found = new Map<string, SessionSummary>();
  for (const call of [...calls].sort((a, b) => (a.request < b.request ? 1 : -1))) {
    if (call.session == null) continue;
    const at = Date.parse(call.queued_at);
    const known = found.get(call.session) ?? { name: call.session, calls: 0, failed: 0, open: 0, tools: [], agents: [], first: at, last: at };
    found.set(call.session, known);
    known.calls++;
    if (call.status === "error") known.failed++;
    if (call.state !== "finished") known.open++;
    if (!known.tools.includes(call.tool)) known.tools.push(call.tool);
    if (call.agent_id != null && !known.agents.includes(call.agent_id)) known.agents.push(call.agent_id);
    known.first = Math.min(known.first, at);
  }
  return [...found.values()];
}
