/** One call, and what its records say. */
import type { Breadcrumb, CallDetails, ToolResponse } from "@rcrt/client";

export type { CallDetails };
export type CallAttempt = CallDetails["attempts"][number];

export interface ConsoleLine {
  level: string;
  message: string;
}

export interface Place {
  line: number;
  column: number;
}

export function inputOf(call: CallDetails): unknown {
  return call.request_record?.context["input"] ?? {};
}

export function responseOf(call: CallDetails): ToolResponse | undefined {
  return (call.response_record?.context as ToolResponse | undefined) ?? undefined;
}

export function metadataOf(response: ToolResponse | undefined): Record<string, unknown> {
  return (response?.metadata as Record<string, unknown> | undefined) ?? {};
}

export function consoleOf(response: ToolResponse | undefined): ConsoleLine[] {
  const lines = metadataOf(response)["console"];
  if (!Array.isArray(lines)) return [];
  return lines.map((line: unknown) => {
    const { level, message } = (typeof line === "object" && line !== null ? line : { message: line }) as Partial<ConsoleLine>;
    return { level: String(level ?? "log"), message: typeof message === "string" ? message : JSON.stringify(message) };
  });
}

export function stackOf(response: ToolResponse | undefined): string | undefined {
  const stack = (response?.error_details as { stack?: unknown } | undefined)?.stack;
  return typeof stack === "string" ? stack : undefined;
}

/** What a call with `debug` recorded beside its console. */
export interface Debug {
  cpu_ms?: number;
  peak_memory_bytes?: number;
  timeline?: { kind: string; at_ms: number; ms?: number; operation?: string; outcome?: string }[];
}

export function debugOf(response: ToolResponse | undefined): Debug | undefined {
  const debug = metadataOf(response)["debug"];
  return typeof debug === "object" && debug !== null ? (debug as Debug) : undefined;
}

/** The first place in the tool's source that an error's stack names. */
export function placeOf(response: ToolResponse | undefined): Place | undefined {
  const details = (response?.error_details ?? {}) as { line?: unknown; column?: unknown };
  if (typeof details.line === "number") return { line: details.line, column: typeof details.column === "number" ? details.column : 1 };
  const found = /[\w.-]+\.(?:ts|js):(\d+):(\d+)/.exec(stackOf(response) ?? "");
  return found === null ? undefined : { line: Number(found[1]), column: Number(found[2]) };
}

/** The source in a tool's context. */
export function sourceOf(context: Breadcrumb["context"] | undefined): string | undefined {
  const source = (context?.["code"] as { source?: unknown } | undefined)?.source;
  return typeof source === "string" ? source : undefined;
}

/** The caller's own id of a call, by which its events are known before it is answered. */
export function newRequestId(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
