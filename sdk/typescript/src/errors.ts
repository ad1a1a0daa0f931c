/** Errors: the server refused a request, the server was unreachable, or a tool failed. */
import type { components } from "./api.js";
import type { Accepted, ToolResponse } from "./shapes.js";
import type { Answer } from "./transport.js";

/** An RFC 9457 problem document. */
export type Problem = components["schemas"]["Problem"];
export type Violation = components["schemas"]["Violation"];

/**
 * Everything that this client throws, apart from an abort (which is the signal's own reason).
 * `cause` is what it came from: an error, a problem document, or a tool's response.
 */
export class RcrtError extends Error {
  override name = "RcrtError";
  constructor(
    message: string,
    /**
     * A stable name: a problem's code, a tool's error code, or one of the client: `invalid_url`,
     * `invalid_argument`, `no_token`, `unreachable`, `foreign` (the answer is not from an RCRT
     * server), `still_running`, `no_parts`.
     */
    readonly code: string,
    /** Whether a retry can help. */
    readonly retryable: boolean,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** The server refused the request, with a reason. */
export class ProblemError extends RcrtError {
  override name = "ProblemError";
  constructor(
    readonly problem: Problem,
    /** The HTTP status. */
    readonly status: number,
    /** The pause that the server asked for. */
    readonly retryAfterMs: number | undefined,
    /** The id of the request in the server's log. */
    readonly requestId: string | undefined,
  ) {
    super(`${problem.title}: ${problem.detail}`, problem.code, status === 429 || status === 502 || status === 503 || status === 504, { cause: problem });
  }

  /** The invalid fields of the input. */
  get violations(): Violation[] {
    return this.problem.violations ?? [];
  }
}

/**
 * No response: the server was unreachable, or the connection broke. The request was possibly done.
 */
export class Unreachable extends RcrtError {
  override name = "Unreachable";
  constructor(message: string, options?: ErrorOptions) {
    super(message, "unreachable", true, options);
  }
}

/** The tool failed. */
export class ToolError extends RcrtError {
  override name = "ToolError";
  constructor(readonly response: ToolResponse) {
    super(`${response.tool}: ${response.error ?? "failed"}`, response.error_code ?? "ExecutionFailed", response.is_retryable ?? false, { cause: response });
  }

  /** Details for programs, from the tool. */
  get details(): unknown {
    return this.response.error_details;
  }
}

/** The call continues, but the caller's time limit is over. */
export class StillRunning extends RcrtError {
  override name = "StillRunning";
  constructor(
    tool: string,
    /** The request, which continues. */
    readonly accepted: Accepted,
    /** The same key with the same call continues to wait. */
    readonly idempotencyKey: string,
  ) {
    super(`${tool} got no response in time; request ${accepted.request} continues`, "still_running", true, { cause: accepted });
  }
}

/** A mistake in the arguments of a method. */
export function invalidArgument(message: string, cause: unknown = message): RcrtError {
  return new RcrtError(message, "invalid_argument", false, { cause });
}

/** A successful answer that no RCRT server gives. */
export function foreign(base: string, why: string, cause: unknown = why): RcrtError {
  return new RcrtError(`the answer of ${base} is not from an RCRT server (${why}); is the address right?`, "foreign", false, { cause });
}

/** The problem in a response that is not a success. It can come from a proxy, in another format. */
export function problemOf(base: string, { status, statusText, headers, text }: Answer): ProblemError {
  let problem: Problem;
  try {
    const read = JSON.parse(text) as Partial<Problem>;
    if (typeof read.code !== "string") throw new Error("not a problem document");
    problem = { type: "about:blank", title: statusText, status, detail: "", ...read, code: read.code };
  } catch {
    let detail = `the answer of ${base} is ${status}, and not from an RCRT server; is the address right?`;
    // Browsers hide the status and the address.
    if (status === 0 || (status >= 300 && status < 400)) {
      const to = headers.get("location") ?? "another address";
      detail = `${base} redirects to ${to}, and the client follows no redirects; give it the server's own URL`;
    }
    problem = { type: "about:blank", title: statusText || "Refused", status, detail, code: "foreign" };
  }
  return new ProblemError(problem, status, retryAfter(headers), headers.get("x-request-id") ?? undefined);
}

/** `Retry-After` in milliseconds. It can be seconds or a date. */
function retryAfter(headers: Headers): number | undefined {
  const text = headers.get("retry-after");
  if (text === null) return undefined;
  const ms = /^\d+$/.test(text.trim()) ? Number(text) * 1000 : Date.parse(text) - Date.now();
  return Number.isFinite(ms) ? Math.max(0, ms) : undefined;
}
