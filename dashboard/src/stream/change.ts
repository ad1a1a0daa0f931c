/** Events as the screens need them: without contexts, which can be large. */
import type { BreadcrumbEvent } from "@rcrt/client";

export interface Change {
  /** The event's number. */
  number: string;
  kind: "created" | "updated" | "deleted";
  /** The record. */
  id: string;
  schema: string;
  version: number;
  tags: string[];
  at: string;
  call?: CallChange;
}

/** What a request, a response or a report of progress says about its call. */
export interface CallChange {
  kind: "request" | "response" | "progress";
  /** The request's record. */
  request: string;
  /** The caller's own id of the request, or that of its record. */
  requestId: string;
  tool: string;
  session?: string;
  parent?: string;
  status?: "success" | "error";
  errorCode?: string;
  /** The input, the error or the message of the progress, cut. */
  text?: string;
  fraction?: number;
}

const TEXT = 200;

export function change(event: BreadcrumbEvent): Change {
  const call = event.type === "breadcrumb.deleted" ? undefined : callOf(event);
  return {
    number: event.id,
    kind: event.type.slice("breadcrumb.".length) as Change["kind"],
    id: event.breadcrumb_id,
    schema: event.schema_name ?? "",
    version: event.version,
    tags: event.tags,
    at: event.updated_at,
    ...(call === undefined ? {} : { call }),
  };
}

function callOf(event: BreadcrumbEvent): CallChange | undefined {
  const context = event.context ?? {};
  const text = (name: string) => (typeof context[name] === "string" ? (context[name] as string) : undefined);
  switch (event.schema_name) {
    case "tool.request.v1": {
      // An update of a request, such as its cancellation, starts no call.
      if (event.type !== "breadcrumb.created") return undefined;
      const input = JSON.stringify(context["input"] ?? {});
      return {
        kind: "request",
        request: event.breadcrumb_id,
        requestId: text("requestId") ?? event.breadcrumb_id,
        tool: text("tool") ?? "",
        ...optional("session", text("session")),
        ...optional("parent", text("parent")),
        text: input.slice(0, TEXT),
      };
    }
    case "tool.response.v1": {
      const metadata = (context["metadata"] ?? {}) as Record<string, unknown>;
      const requestId = text("request_id") ?? "";
      return {
        kind: "response",
        request: typeof metadata["request"] === "string" ? metadata["request"] : requestId,
        requestId,
        tool: text("tool") ?? "",
        status: context["status"] === "error" ? "error" : "success",
        ...optional("errorCode", text("error_code")),
        ...optional("text", text("error")?.slice(0, TEXT)),
      };
    }
    case "tool.progress.v1": {
      const fraction = context["fraction"];
      return {
        kind: "progress",
        request: text("request") ?? "",
        requestId: text("request_id") ?? "",
        tool: text("tool") ?? "",
        ...optional("text", text("message")?.slice(0, TEXT)),
        ...(typeof fraction === "number" ? { fraction } : {}),
      };
    }
    default:
      return undefined;
  }
}

function optional<K extends string>(name: K, value: string | undefined): { [P in K]?: string } {
  return (value === undefined ? {} : { [name]: value }) as { [P in K]?: string };
}
