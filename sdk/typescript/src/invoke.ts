/**
 * A call of a tool, from the request to the response, however long it takes and however often the
 * connection breaks.
 */
import { foreign, invalidArgument, StillRunning } from "./errors.js";
import type { ModelCall, ModelFormat } from "./models.js";
import { checkOptions, type Names } from "./options.js";
import { backoff, pause } from "./pause.js";
import type { Accepted, Invocation, ToolResponse } from "./shapes.js";
import { newKey, type Answer, type RequestOptions, type Transport } from "./transport.js";

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
  /** Streams console lines as `tool.log.v1`, and adds a timeline to `metadata.debug`. */
  debug?: boolean;
  /** The version of the tool's record that must run, as `metadata.tool_version` of a response. */
  version?: number;
  /** The definition that must run, as `metadata.definition_hash` of a response. */
  definitionHash?: string;
  /** The caller's own id for the request. */
  requestId?: string;
  /** The caller's position in a trace (W3C Trace Context). */
  traceparent?: string;
  /** Cancels the call when the signal is aborted. */
  cancelOnAbort?: boolean;
}

export const INVOKE_OPTIONS: Names<InvokeOptions> = {
  signal: true,
  waitMs: true,
  idempotencyKey: true,
  workspace: true,
  session: true,
  model: true,
  maxResultChars: true,
  deadlineMs: true,
  debug: true,
  version: true,
  definitionHash: true,
  requestId: true,
  traceparent: true,
  cancelOnAbort: true,
};

/** What a model's call is in each format. */
const CALLS: Record<ModelFormat, string> = {
  openai: "one of a message's tool_calls, { id, function: { name, arguments } }",
  "openai-responses": "a function_call item, { call_id, name, arguments }",
  anthropic: "a tool_use block, { id, name, input }",
  mcp: "the params of tools/call, { name, arguments }",
};
/** The longest name that a request can have, in characters. */
const MAX_NAME = 200;
const WAIT_MS = 300_000;
/** The longest that the server waits in one round trip. */
const ROUND_MS = 60_000;

/** The body of a call, and the query beside it. */
interface Asked {
  body: unknown;
  query?: Record<string, string | number | boolean | undefined>;
}

/** The response, which can be a failure. {@link StillRunning} when the time is over. */
export async function invoke(transport: Transport, tool: string, input: unknown, options: InvokeOptions): Promise<ToolResponse> {
  checkOptions(options, INVOKE_OPTIONS);
  const answer = await ask(transport, tool, { body: { input, ...fields(options) } satisfies Invocation }, options);
  return transport.read<ToolResponse>("post", "/tools/{name}/invoke", answer);
}

/** Calls a tool as a model asked for it, and returns the message for the model. */
export async function invokeFor(transport: Transport, format: ModelFormat, call: ModelCall, options: InvokeOptions): Promise<unknown> {
  checkOptions(options, INVOKE_OPTIONS);
  if (!Object.keys(CALLS).includes(format)) throw invalidArgument(`format must be ${Object.keys(CALLS).join(", ")}; it is ${JSON.stringify(format)}`);
  const given: GivenCall = typeof call === "object" && call !== null ? call : {};
  const name = format === "openai" ? (given.function?.name ?? given.name) : given.name;
  if (typeof name !== "string") {
    const fields = Object.keys(given);
    const what = fields.length > 0 ? `an object with ${fields.slice(0, 10).join(", ")}` : Array.isArray(call) ? "an array" : String(call);
    throw invalidArgument(`the tool call has no name: give ${CALLS[format]}, for the format ${format}; it is ${what}`, call);
  }
  if (!canBeName(name)) return withoutTool(format, given, name);
  const answer = await ask(transport, name, { body: call, query: { format, ...fields(options) } }, options);
  const message = transport.parse(answer) as Record<string, unknown> | null;
  const type = typeof message === "object" && message !== null ? (message["type"] ?? message["role"] ?? (Array.isArray(message["content"]) && "result")) : "";
  if (!["tool", "function_call_output", "tool_result", "result"].includes(String(type))) throw foreign(transport.base, "it is not a message for a model", message);
  return message;
}

interface GivenCall {
  name?: unknown;
  id?: unknown;
  call_id?: unknown;
  function?: { name?: unknown } | null;
}

/** Whether a request can have the name. A model can invent any. */
function canBeName(name: string): boolean {
  try {
    encodeURIComponent(name);
  } catch {
    return false;
  }
  return !["", ".", ".."].includes(name.trim()) && [...name].length <= MAX_NAME && !name.includes("\0");
}

/** The message about a name that no tool can have. */
function withoutTool(format: ModelFormat, given: GivenCall, name: string): unknown {
  const text = `ToolNotFound: there is no tool named ${JSON.stringify([...name].slice(0, MAX_NAME).join(""))}`;
  if (format === "mcp") return { content: [{ type: "text", text }], isError: true };
  if (format === "anthropic") return { type: "tool_result", tool_use_id: given.id, content: text, is_error: true };
  if (format === "openai-responses" || given.call_id !== undefined) return { type: "function_call_output", call_id: given.call_id, output: text };
  return { role: "tool", tool_call_id: given.id, content: text };
}

/** The final answer of the server. */
async function ask(transport: Transport, tool: string, asked: Asked, options: InvokeOptions): Promise<Answer> {
  if (typeof tool !== "string" || tool.trim() === "") throw invalidArgument(`the tool's name must not be empty; it is ${JSON.stringify(tool)}`);
  const whole = options.waitMs ?? WAIT_MS;
  if (typeof whole !== "number" || !(whole >= 0)) throw invalidArgument(`waitMs must be milliseconds, 0 or more; it is ${String(whole)}`);
  const key = options.idempotencyKey ?? newKey();
  const ends = performance.now() + whole;
  let accepted: Accepted | undefined;
  try {
    for (let early = 1; ; ) {
      const begun = performance.now();
      // In whole seconds. The last round can be 0, which checks once more whether the response
      // exists.
      const wait = Math.floor(Math.min(ROUND_MS, Math.max(0, ends - begun)) / 1000);
      const answer = await transport.exchange("post", "/tools/{name}/invoke", {
        path: { name: tool },
        headers: { prefer: `wait=${wait}`, "idempotency-key": key, traceparent: options.traceparent },
        ...asked,
        again: true,
        retryMs: Math.min(transport.retryMs, Math.max(0, ends - begun)),
        timeoutMs: wait * 1000 + ROUND_MS,
        ...(options.signal === undefined ? {} : { signal: options.signal }),
      });
      if (answer.status !== 202) return answer;
      accepted = transport.read<Accepted>("post", "/tools/{name}/invoke", answer);
      if (performance.now() + 1000 > ends) throw new StillRunning(tool, accepted, key);
      // A stopping server responds early. The next server knows the request.
      if (performance.now() - begun < wait * 500) await pause(backoff(early++), options.signal);
    }
  } catch (error) {
    if (options.cancelOnAbort === true && options.signal?.aborted === true) await cancel(transport, tool, asked, key, accepted);
    throw error;
  }
}

/** Cancels the request. Without its response, it is found by its key. */
async function cancel(
  transport: Transport,
  tool: string,
  asked: Asked,
  key: string,
  accepted: Accepted | undefined,
): Promise<void> {
  try {
    let id = accepted?.request;
    if (id === undefined) {
      const headers = { prefer: "respond-async", "idempotency-key": key };
      const answer = await transport.exchange("post", "/tools/{name}/invoke", { path: { name: tool }, headers, ...asked, again: true, retryMs: 0 });
      id = (transport.parse(answer) as Partial<Accepted>).request;
    }
    if (id !== undefined) await transport.exchange("post", "/calls/{request_id}/cancel", { path: { request_id: id }, again: true, retryMs: 0 });
  } catch {
    // The caller gets the abort. Whether the cancellation reached the server is not promised.
  }
}

/** The fields of a call beside its input. */
function fields(options: InvokeOptions) {
  return {
    ...(options.workspace === undefined ? {} : { workspace: options.workspace }),
    ...(options.session === undefined ? {} : { session: options.session }),
    ...(options.model === undefined ? {} : { model: options.model }),
    ...(options.maxResultChars === undefined ? {} : { max_result_chars: options.maxResultChars }),
    ...(options.deadlineMs === undefined ? {} : { deadline_ms: options.deadlineMs }),
    ...(options.debug === undefined ? {} : { debug: options.debug }),
    ...(options.version === undefined ? {} : { version: options.version }),
    ...(options.definitionHash === undefined ? {} : { definition_hash: options.definitionHash }),
    ...(options.requestId === undefined ? {} : { requestId: options.requestId }),
  };
}
