/** Which calls the screen Live shows, and what an event says of that. */
import type { CallQuery } from "@rcrt/client";
import type { CallChange } from "../stream/change";

export type Filter = Pick<CallQuery, "tool" | "state" | "status" | "agent_id" | "session" | "tag" | "text" | "error_code" | "since" | "until">;

/**
 * Whether the events alone say which calls match. They have neither the whole text, nor the tags and
 * the agent of a call, nor its states before the end: then the server filters.
 */
export function isOfEvents({ text, tag, agent_id, state, status, error_code }: Filter): boolean {
  return [text, tag, agent_id, state, status, error_code].every((value) => value === undefined);
}

/** Whether a call that did not match before can match after this event. */
export function mayMatch(filter: Filter, call: CallChange, at: number): boolean {
  const { tool, session, text, state, status, error_code: code, since, until } = filter;
  const isOfEnds = status !== undefined || code !== undefined || state === "finished";
  if (tool !== undefined && call.tool !== tool) return false;
  if (call.kind === "request") {
    if (isOfEnds || (session !== undefined && call.session !== session)) return false;
    return (since === undefined || at >= Date.parse(since)) && (until === undefined || at < Date.parse(until));
  }
  if (call.kind !== "response" || (state !== undefined && state !== "finished")) return false;
  if ((status !== undefined && call.status !== status) || (code !== undefined && call.errorCode !== code)) return false;
  return isOfEnds || text !== undefined;
}
