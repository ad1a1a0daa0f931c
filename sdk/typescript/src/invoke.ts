/**
 * A call of a tool, from the request to the response, however long it takes and however often the
 * connection breaks.
 */
import { StillRunning } from "./errors.js";
import { backoff, pause } from "./pause.js";
import type { Accepted, Invocation, ToolResponse } from "./shapes.js";
import type { RequestOptions, Transport } from "./transport.js";

export interface InvokeOptions extends Omit<RequestOptions, "timeoutMs"> {
  /** How long to wait for the response in total, in milliseconds. The default is five minutes. */
  waitMs?: number;
  /** The same key with the same call gets the response of the first. By default a new key. */
  idempotencyKey?: string;
  /** The workspace of the request and its response. */
  workspace?: string;
  /** The conversation: a large result goes to its working memory, in parts. */
  session?: string;
  /** The model that will read the response. */
  model?: string;
  /** The most characters of a result in one piece. */
  maxResultChars?: number;
  /** Milliseconds from now until the response must exist. After that it is a `Timeout`. */
  deadlineMs?: number;
  /** The caller's own id for the request. */
  requestId?: string;
  /** The caller's position in a trace (W3C Trace Context). */
  traceparent?: string;
  /** Cancels the call when the signal is aborted. */
  cancelOnAbort?: boolean;
}

const WAIT_MS = 300_000;
/** The longest that the server waits in one round trip. */
const ROUND_MS = 60_000;

/** The response, which can be a failure. {@link StillRunning} when the time is over. */
export async function invoke(transport: Transport, tool: string, input: unknown, options: InvokeOptions): Promise<ToolResponse> {
  const key = options.idempotencyKey ?? crypto.randomUUID();
  const ends = performance.now() + (options.waitMs ?? WAIT_MS);
  let accepted: Accepted | undefined;
  try {
    for (let early = 1; ; ) {
      const begun = performance.now();
      // In whole seconds. The last round can be 0, which checks once more whether the response
      // exists.
      const wait = Math.floor(Math.min(ROUND_MS, Math.max(0, ends - begun)) / 1000);
      const { answer } = await transport.exchange("post", "/tools/{name}/invoke", {
        path: { name: tool },
        headers: { prefer: `wait=${wait}`, "idempotency-key": key, traceparent: options.traceparent },
        body: invocation(input, options),
        again: true,
        timeoutMs: wait * 1000 + ROUND_MS,
        ...(options.signal === undefined ? {} : { signal: options.signal }),
      });
      if (answer.status !== 202) return (await answer.json()) as ToolResponse;
      accepted = (await answer.json()) as Accepted;
      if (performance.now() + 1000 > ends) throw new StillRunning(tool, accepted, key);
      // A stopping server responds early. The next server knows the request.
      if (performance.now() - begun < wait * 500) await pause(backoff(early++), options.signal);
    }
  } catch (error) {
    if (options.cancelOnAbort === true && options.signal?.aborted === true) await cancel(transport, tool, input, options, key, accepted);
    throw error;
  }
}

/** Cancels the request. Without its response, it is found by its key. */
async function cancel(
  transport: Transport,
  tool: string,
  input: unknown,
  options: InvokeOptions,
  key: string,
  accepted: Accepted | undefined,
): Promise<void> {
  try {
    let id = accepted?.request;
    if (id === undefined) {
      const headers = { prefer: "respond-async", "idempotency-key": key };
      const body = invocation(input, options);
      const { answer } = await transport.exchange("post", "/tools/{name}/invoke", { path: { name: tool }, headers, body, again: true });
      id = ((await answer.json()) as Partial<Accepted>).request;
    }
    if (id !== undefined) await transport.exchange("post", "/calls/{request_id}/cancel", { path: { request_id: id }, again: true });
  } catch {
    // The caller gets the abort. Whether the cancellation reached the server is not promised.
  }
}

function invocation(input: unknown, options: InvokeOptions): Invocation {
  const body: Invocation = { input };
  if (options.workspace !== undefined) body.workspace = options.workspace;
  if (options.session !== undefined) body.session = options.session;
  if (options.model !== undefined) body.model = options.model;
  if (options.maxResultChars !== undefined) body.max_result_chars = options.maxResultChars;
  if (options.deadlineMs !== undefined) body.deadline_ms = options.deadlineMs;
  if (options.requestId !== undefined) body.requestId = options.requestId;
  return body;
}
