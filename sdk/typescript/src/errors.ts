/** What can go wrong: a refusal of the server, no server, or a tool that failed. */
import type { components } from "./api.js";
import type { Accepted, ToolResponse } from "./shapes.js";

/** An RFC 9457 problem document. */
export type Problem = components["schemas"]["Problem"];
export type Violation = components["schemas"]["Violation"];

/** Everything that this client throws, apart from an abort (which is the signal's own reason). */
export class RcrtError extends Error {
  override name = "RcrtError";
  constructor(
    message: string,
    /** A stable name: a problem's code, a tool's error code, `unreachable` or `still_running`. */
    readonly code: string,
    /** Whether the same again may go better. */
    readonly retryable: boolean,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** The server refused, and says why. */
export class ProblemError extends RcrtError {
  override name = "ProblemError";
  constructor(
    readonly problem: Problem,
    /** The HTTP status. */
    readonly status: number,
    /** How long the server asked to wait before the next attempt. */
    readonly retryAfterMs: number | undefined,
    /** Under this id the server's log tells more. */
    readonly requestId: string | undefined,
  ) {
    super(`${problem.title}: ${problem.detail}`, problem.code, status === 429 || status === 502 || status === 503 || status === 504);
  }

  /** Everything that is wrong with the input, a field each. */
  get violations(): Violation[] {
    return this.problem.violations ?? [];
  }
}

/** No answer: no server is there, or the connection broke. What was asked may have been done. */
export class Unreachable extends RcrtError {
  override name = "Unreachable";
  constructor(message: string, options?: ErrorOptions) {
    super(message, "unreachable", true, options);
  }
}

/** The tool answered that it failed. */
export class ToolError extends RcrtError {
  override name = "ToolError";
  constructor(readonly response: ToolResponse) {
    super(`${response.tool}: ${response.error ?? "failed"}`, response.error_code ?? "ExecutionFailed", response.is_retryable ?? false);
  }

  /** For programs, as the tool gave it. */
  get details(): unknown {
    return this.response.error_details;
  }
}

/** The call goes on, but the caller's time is up. */
export class StillRunning extends RcrtError {
  override name = "StillRunning";
  constructor(
    tool: string,
    /** The request that stands. */
    readonly accepted: Accepted,
    /** The same key with the same call waits on. */
    readonly idempotencyKey: string,
  ) {
    super(`${tool} has not answered in time; its request ${accepted.request} stands`, "still_running", true);
  }
}

/** The problem in an answer that is no success. Proxies answer, too, and in words of their own. */
export async function problemOf(answer: Response): Promise<ProblemError> {
  const text = await answer.text().catch(() => "");
  let problem: Problem;
  try {
    const read = JSON.parse(text) as Partial<Problem>;
    if (typeof read.code !== "string") throw new Error("no problem document");
    problem = { type: "about:blank", title: answer.statusText, status: answer.status, detail: "", ...read, code: read.code };
  } catch {
    const detail = `the answer was ${answer.status} from something that is no RCRT server; is the address right?`;
    problem = { type: "about:blank", title: answer.statusText || "Refused", status: answer.status, detail, code: "foreign" };
  }
  return new ProblemError(problem, answer.status, retryAfter(answer.headers), answer.headers.get("x-request-id") ?? undefined);
}

/** `Retry-After` in milliseconds: it comes as seconds or as a date. */
function retryAfter(headers: Headers): number | undefined {
  const text = headers.get("retry-after");
  if (text === null) return undefined;
  const ms = /^\d+$/.test(text.trim()) ? Number(text) * 1000 : Date.parse(text) - Date.now();
  return Number.isFinite(ms) ? Math.max(0, ms) : undefined;
}
