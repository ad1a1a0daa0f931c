// Asks a model at Venice: messages in; content, tool calls and usage out.

const TOOL = "venice";
const SERVICE = "Venice";
const BASE_URL = "https://api.venice.ai/api/v1";
const SECRET = "VENICE_API_KEY";
/** Venice has no choice of its own. */
const DEFAULT_MODEL: string | undefined = undefined;
const REPORT_USAGE = { stream_options: { include_usage: true } };

// --- Chat completions: the same in openrouter.ts and venice.ts ---

interface Chunk {
  model?: string;
  error?: { message?: string; code?: number | string };
  usage?: { prompt_tokens?: number; completion_tokens?: number; total_tokens?: number; cost?: number } | null;
  choices?: { delta?: Delta; message?: Delta; finish_reason?: string | null }[];
}

interface Delta {
  content?: string | null;
  tool_calls?: { index?: number; id?: string; function?: { name?: string; arguments?: string } }[];
}

interface Output extends Answer {
  cost_estimate: number | null;
  attempts: number;
}

export async function execute(input: Input, context: Context): Promise<Output> {
  const config = await readConfig(input, context);
  const model = input.model ?? config.defaultModel ?? DEFAULT_MODEL;
  if (model === undefined) {
    throw new Error("model: name a model, or set defaultModel in the tool's tool.config.v1 record");
  }
  const key = config.apiKeySecretId
    ? (await context.api.getSecret(config.apiKeySecretId, `the key for ${SERVICE}`)).value
    : context.secrets[SECRET];
  const { messages, top_p, stop, seed, tools, tool_choice, response_format } = input;
  const request: HttpRequest = {
    url: `${config.baseUrl ?? BASE_URL}/chat/completions`,
    headers: { authorization: `Bearer ${key}`, accept: "text/event-stream" },
    body: {
      model,
      messages,
      stream: true,
      ...REPORT_USAGE,
      temperature: input.temperature ?? config.temperature,
      max_tokens: input.max_tokens ?? config.maxTokens,
      ...{ top_p, stop, seed, tools, tool_choice, response_format },
    },
  };
  const { result, attempts } = await send(request, input, context, (response) => completion(response, model, context));
  return { ...result, attempts };
}

/** The answer as it arrives: server-sent events, or one JSON object if the server has no streams. */
async function completion(response: Response, model: string, context: Context): Promise<Omit<Output, "attempts">> {
  const partial = new PartialAnswer(model, context);
  let cost: number | null = null;
  const accept = (text: string): void => {
    const chunk = parsed<Chunk>(text);
    if (chunk.error) {
      const code = Number(chunk.error.code) || 500;
      throw new Refused(`${SERVICE} reported an error: ${chunk.error.message ?? code}`, code, partial.isEmpty());
    }
    partial.model = chunk.model ?? partial.model;
    if (chunk.usage) {
      const { prompt_tokens = 0, completion_tokens = 0 } = chunk.usage;
      const total_tokens = chunk.usage.total_tokens ?? prompt_tokens + completion_tokens;
      partial.usage = { prompt_tokens, completion_tokens, total_tokens };
      cost = chunk.usage.cost ?? cost;
    }
    const choice = chunk.choices?.[0];
    const delta = choice?.delta ?? choice?.message;
    partial.finishReason = choice?.finish_reason ?? partial.finishReason;
    delta?.tool_calls?.forEach((call, position) => {
      partial.addToolCall(call.index ?? position, call.id, call.function?.name, call.function?.arguments);
    });
    partial.addText(delta?.content);
  };
  let isDone = false;
  if (response.headers.get("content-type")?.includes("application/json")) {
    let whole = "";
    await readLines(response, (line) => {
      whole += line;
      return false;
    });
    accept(whole);
  } else {
    await readLines(response, (line, isComplete) => {
      // Each event of this protocol has one data line. Comments keep the connection open.
      const data = line.startsWith("data:") ? line.slice(5).trim() : "";
      isDone ||= data === "[DONE]";
      if (data !== "" && !isDone && isComplete) {
        accept(data);
      }
      return isDone || partial.truncated;
    });
  }
  return { ...partial.finished(isDone), cost_estimate: cost };
}

// --- Answers and requests: the same in openrouter.ts, venice.ts and ollama.ts ---

/** The most characters of an answer. A longer text is cut here. */
const MAX_ANSWER = 1_000_000;
/** The most bytes of one response, with all that is not text. */
const MAX_RESPONSE = 32 * 1024 * 1024;
/** The most characters of one line of a response. */
const MAX_LINE = 4 * 1024 * 1024;
const MAX_TOOL_CALLS = 128;
const MAX_PROGRESS = 500;
const FIRST_PAUSE_MS = 500;
const MAX_PAUSE_MS = 8_000;

interface ToolCall {
  id: string;
  type: "function";
  function: { name: string; arguments: string };
}

interface Message {
  role: string;
  content?: string | Record<string, unknown>[] | null;
  tool_calls?: ToolCall[];
  tool_call_id?: string;
}

interface Input {
  messages: Message[];
  model?: string;
  temperature?: number;
  top_p?: number;
  max_tokens?: number;
  stop?: string | string[];
  seed?: number;
  tools?: unknown[];
  tool_choice?: unknown;
  response_format?: { type: string; json_schema?: { schema?: unknown } };
  config_id?: string;
  timeout_ms?: number;
  max_retries?: number;
}

interface Config {
  apiKeySecretId?: string;
  defaultModel?: string;
  maxTokens?: number;
  temperature?: number;
  baseUrl?: string;
}

interface RecordView {
  id: string;
  schema_name?: string;
  context?: Record<string, unknown>;
}

interface Context {
  secrets: Record<string, string>;
  request: { trigger_event?: { context?: { config_id?: unknown } } | null };
  api: {
    getBreadcrumb(id: string): Promise<RecordView>;
    searchBreadcrumbs(query: Record<string, unknown>): Promise<RecordView[]>;
    getSecret(id: string, reason: string): Promise<{ value: string }>;
  };
  progress(fraction: number | null, message: string): void;
}

interface Usage {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
}

interface Answer {
  content: string;
  tool_calls: ToolCall[];
  finish_reason: string;
  model: string;
  usage: Usage | null;
  truncated: boolean;
}

interface HttpRequest {
  url: string;
  headers: Record<string, string>;
  body?: unknown;
}

/** An error response. `canRetry` is false once a part of the answer has arrived. */
class Refused extends Error {
  constructor(
    message: string,
    readonly status: number,
    readonly canRetry: boolean,
    readonly retryAfterMs?: number,
  ) {
    super(message);
  }

  isTemporary(): boolean {
    return this.canRetry && (this.status === 429 || this.status >= 500);
  }
}

/** The settings: the record that config_id names, else the newest one for this tool, else none. */
async function readConfig(input: Input, context: Context): Promise<Config> {
  // A request can name the configuration beside its input.
  const asked = input.config_id ?? context.request.trigger_event?.context?.config_id;
  let record: RecordView | undefined;
  if (typeof asked === "string") {
    record = await context.api.getBreadcrumb(asked);
    const owner = record.context?.tool_name ?? record.context?.toolName ?? TOOL;
    if (record.schema_name !== "tool.config.v1" || owner !== TOOL) {
      throw new Error(`config_id: the record ${asked} is not a tool.config.v1 for ${TOOL}`);
    }
  } else {
    const any_tags = [`tool:${TOOL}`, `tool:config:${TOOL}`];
    const query = { schema_name: "tool.config.v1", any_tags, limit: 1, include_context: true };
    [record] = await context.api.searchBreadcrumbs(query);
  }
  const config = (record?.context?.config ?? {}) as Record<string, unknown>;
  const texts = { apiKeySecretId: "string", defaultModel: "string", baseUrl: "string" };
  const types = { ...texts, maxTokens: "number", temperature: "number" };
  const read: Record<string, unknown> = {};
  for (const [field, type] of Object.entries(types)) {
    const value = config[field] ?? undefined;
    if (value !== undefined && value !== "" && typeof value !== type) {
      throw new Error(`the tool.config.v1 record ${record?.id}: config.${field} must be a ${type}`);
    }
    read[field] = value === "" ? undefined : value;
  }
  return { ...read, baseUrl: (read.baseUrl as string | undefined)?.replace(/\/+$/, "") };
}

/** An answer while it arrives. Each part is reported as progress. */
class PartialAnswer {
  model: string;
  usage: Usage | null = null;
  finishReason: string | null = null;
  truncated = false;
  private content = "";
  private size = 0;
  private readonly calls = new Map<number, ToolCall>();

  constructor(
    model: string,
    private readonly context: Context,
  ) {
    this.model = model;
  }

  isEmpty(): boolean {
    return this.size === 0;
  }

  addText(text: string | null | undefined): void {
    if (!text) {
      return;
    }
    const room = MAX_ANSWER - this.size;
    this.truncated = text.length > room;
    this.content += text.slice(0, room);
    this.size += Math.min(text.length, room);
    this.context.progress(null, this.content.slice(-MAX_PROGRESS));
  }

  /** A part of a call: the parts with one index belong together. */
  addToolCall(index: number, id?: string | null, name?: string | null, text?: string | null): void {
    const call = this.calls.get(index) ?? { id: "", type: "function", function: { name: "", arguments: "" } };
    this.calls.set(index, call);
    call.id ||= id ?? "";
    call.function.name ||= name ?? "";
    call.function.arguments += text ?? "";
    this.size += (text ?? "").length + 1;
    // A part of a call's arguments would be of no use.
    if (this.size > MAX_ANSWER || this.calls.size > MAX_TOOL_CALLS) {
      throw new Error(`${SERVICE} sent more than ${MAX_TOOL_CALLS} tool calls, or ${MAX_ANSWER} characters in them`);
    }
    this.context.progress(null, `calls ${call.function.name}`);
  }

  /** Throws if the connection ended before the answer did. */
  finished(isDone: boolean): Answer {
    const tool_calls = [...this.calls.entries()].sort(([a], [b]) => a - b).map(([, call]) => call);
    if (!isDone && !this.truncated && this.finishReason === null) {
      throw new Error(`${SERVICE} cut the answer off after ${this.content.length} characters`);
    }
    if (tool_calls.some((call) => call.function.name === "")) {
      throw new Error(`${SERVICE} sent a tool call without a name`);
    }
    for (const call of tool_calls) {
      call.id ||= `call_${crypto.randomUUID()}`;
      call.function.arguments = call.function.arguments.toWellFormed();
    }
    const finish_reason = this.truncated ? "length" : (this.finishReason ?? "stop");
    const { model, usage, truncated } = this;
    // Escapes in JSON can form half of a character, and the limit can cut one.
    return { content: this.content.toWellFormed(), tool_calls, finish_reason, model, usage, truncated };
  }
}

/** Sends the request, and again after 429 and 5xx, until timeout_ms or max_retries is reached. */
async function send<T>(
  request: HttpRequest,
  input: { timeout_ms?: number; max_retries?: number },
  context: Context,
  read: (response: Response) => Promise<T>,
): Promise<{ result: T; attempts: number }> {
  const { timeout_ms = 60_000, max_retries = 3 } = input;
  const ends = Date.now() + timeout_ms;
  const signal = AbortSignal.timeout(timeout_ms);
  for (let attempts = 1; ; attempts++) {
    try {
      return { result: await sendOnce(request, signal, read), attempts };
    } catch (error) {
      if (signal.aborted) {
        throw new Error(`${SERVICE} did not finish within timeout_ms, which is ${timeout_ms}`);
      }
      if (!(error instanceof Refused) || !error.isTemporary() || attempts > max_retries) {
        throw error;
      }
      // Spread, so that callers that were refused together do not come back together.
      const pause = Math.min(FIRST_PAUSE_MS * 2 ** (attempts - 1), MAX_PAUSE_MS) * (0.5 + Math.random() / 2);
      const wait = Math.round(error.retryAfterMs ?? pause);
      if (Date.now() + wait >= ends) {
        throw new Error(`${error.message}; an attempt in ${wait} ms would exceed timeout_ms, which is ${timeout_ms}`);
      }
      context.progress(null, `${error.message}; attempt ${attempts + 1} in ${wait} ms`);
      await new Promise((resolve) => setTimeout(resolve, wait));
    }
  }
}

async function sendOnce<T>(
  { url, headers, body }: HttpRequest,
  signal: AbortSignal,
  read: (response: Response) => Promise<T>,
): Promise<T> {
  const json = { ...headers, "content-type": "application/json" };
  const init = body === undefined ? { headers } : { method: "POST", headers: json, body: JSON.stringify(body) };
  const response = await fetch(url, { ...init, signal });
  if (response.ok) {
    return await read(response);
  }
  const said = (await shortText(response)).trim();
  let reason = said.slice(0, 500);
  try {
    const { error, message } = JSON.parse(said);
    reason = String(error?.message ?? message ?? error ?? reason).slice(0, 500);
  } catch {
    // Not JSON: the text is the reason.
  }
  const message = `${SERVICE} answered ${response.status}${reason ? `: ${reason}` : ""}`;
  throw new Refused(message, response.status, true, retryAfterMs(response));
}

/** The header's seconds or date as milliseconds from now. */
function retryAfterMs(response: Response): number | undefined {
  const header = response.headers.get("retry-after")?.trim();
  if (!header) {
    return undefined;
  }
  const wait = /^\d+$/.test(header) ? Number(header) * 1000 : Date.parse(header) - Date.now();
  return Number.isNaN(wait) ? undefined : Math.max(0, wait);
}

/** The beginning of an error's body. */
async function shortText(response: Response): Promise<string> {
  const reader = response.body?.getReader();
  const decoder = new TextDecoder();
  let text = "";
  try {
    while (reader && text.length < 10_000) {
      const { done, value } = await reader.read();
      if (done) {
        break;
      }
      text += decoder.decode(value, { stream: true });
    }
    await reader?.cancel();
  } catch {
    // The status says enough.
  }
  return text;
}

/** Passes each line to `take`, until that returns true. The last one may lack its end. */
async function readLines(response: Response, take: (line: string, isComplete: boolean) => boolean): Promise<void> {
  const reader = response.body?.getReader();
  if (!reader) {
    return;
  }
  const decoder = new TextDecoder();
  let [rest, received] = ["", 0];
  for (;;) {
    const { done, value } = await reader.read().catch((error: Error) => {
      throw new Error(`${SERVICE} cut the response off after ${received} bytes: ${error.message}`);
    });
    received += value?.byteLength ?? 0;
    rest += done ? decoder.decode() : decoder.decode(value, { stream: true });
    const lines = rest.split("\n");
    rest = lines.pop() ?? "";
    if (received > MAX_RESPONSE || rest.length > MAX_LINE) {
      await reader.cancel();
      throw new Error(`${SERVICE} sent more than ${MAX_RESPONSE} bytes, or a line of more than ${MAX_LINE} characters`);
    }
    if (lines.some((line) => take(line.endsWith("\r") ? line.slice(0, -1) : line, true))) {
      await reader.cancel();
      return;
    }
    if (done) {
      take(rest, false);
      return;
    }
  }
}

function parsed<T>(text: string): T {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // Reported below.
  }
  if (typeof value !== "object" || value === null) {
    throw new Error(`${SERVICE} sent a malformed response: ${JSON.stringify(text.slice(0, 200))}`);
  }
  return value as T;
}
