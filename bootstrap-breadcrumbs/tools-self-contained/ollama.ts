// Asks a model of an Ollama server: messages in; content, tool calls and usage out.
//
// Ollama usually runs on the operator's own machine. Such a host needs the operator's permission:
// `--allow-private-host ollama=localhost:11434`. For another host, list it in permissions.net and
// set baseUrl in the tool's tool.config.v1 record.

const TOOL = "ollama";
const SERVICE = "Ollama";
const BASE_URL = "http://localhost:11434";
const MAX_MODELS_SHOWN = 20;
const DEFAULT_TIMEOUT_MS = 300_000;

/** One line of a response. */
interface Line {
  model?: string;
  error?: string;
  message?: { content?: string; tool_calls?: { function?: { name?: string; arguments?: unknown } }[] };
  done?: boolean;
  done_reason?: string;
  prompt_eval_count?: number;
  eval_count?: number;
}

interface Output extends Answer {
  cost_estimate: number;
  attempts: number;
}

export async function execute(given: Input & { ollama_host?: string }, context: Context): Promise<Output> {
  const input = { timeout_ms: DEFAULT_TIMEOUT_MS, ...given };
  const config = await readConfig(input, context);
  const host = (input.ollama_host ?? config.baseUrl ?? BASE_URL).replace(/\/+$/, "");
  const base = host.includes("://") ? host : `http://${host}`;
  const model = input.model ?? config.defaultModel;
  if (model === undefined) {
    const models = await installed(base, input, context);
    throw new Error(`model: name a model, or set defaultModel in tool.config.v1; ${models}`);
  }
  const request: HttpRequest = { url: `${base}/api/chat`, headers: {}, body: body(model, input, config) };
  try {
    const { result, attempts } = await send(request, input, context, (response) => chat(response, model, context));
    return { ...result, cost_estimate: 0, attempts };
  } catch (error) {
    if (error instanceof Refused && error.status === 404) {
      throw new Error(`${error.message}; ${await installed(base, input, context)}`);
    }
    throw error;
  }
}

/** Which models can be named. */
async function installed(base: string, input: Input, context: Context): Promise<string> {
  const request = { url: `${base}/api/tags`, headers: {} };
  const { result } = await send(request, input, context, async (response) => {
    let text = "";
    await readLines(response, (line) => {
      text += line;
      return false;
    });
    return parsed<{ models?: { name?: string }[] }>(text);
  });
  const names = (result.models ?? []).map((model) => String(model?.name)).slice(0, MAX_MODELS_SHOWN);
  return names.length === 0 ? "no model is installed" : `the installed models are ${names.join(", ")}`;
}

/** The request in Ollama's form. */
function body(model: string, input: Input, config: Config): unknown {
  const { top_p, seed, stop, tools, response_format } = input;
  const options = {
    temperature: input.temperature ?? config.temperature,
    num_predict: input.max_tokens ?? config.maxTokens,
    ...{ top_p, seed },
    stop: typeof stop === "string" ? [stop] : stop,
  };
  const formats: Record<string, unknown> = { json_object: "json", json_schema: response_format?.json_schema?.schema };
  // Ollama has no tool_choice: without tools the model calls none.
  const offered = input.tool_choice === "none" ? undefined : tools;
  const format = formats[response_format?.type ?? ""];
  return { model, messages: converted(input.messages), stream: true, options, tools: offered, format };
}

function converted(messages: Message[]): unknown[] {
  const names = new Map<string, string>();
  return messages.map((message, index) => {
    const field = `messages[${index}]`;
    const { text, images } = parts(message.content ?? "", field);
    const tool_calls = message.tool_calls?.map((call) => {
      names.set(call.id, call.function.name);
      return { function: { name: call.function.name, arguments: argumentsOf(call, field) } };
    });
    // A result names its tool, not the call.
    const tool_name = message.tool_call_id === undefined ? undefined : names.get(message.tool_call_id);
    if (message.role === "tool" && tool_name === undefined) {
      throw new Error(`${field}.tool_call_id: no message before it has this call`);
    }
    const role = message.role === "developer" ? "system" : message.role;
    return { role, content: text, images, tool_calls, tool_name };
  });
}

function argumentsOf(call: ToolCall, field: string): unknown {
  try {
    return JSON.parse(call.function.arguments || "{}");
  } catch {
    throw new Error(`${field}.tool_calls: the arguments of ${call.function.name} are not JSON`);
  }
}

/** The text and the images, as base64, of a message. */
function parts(content: string | Record<string, unknown>[], field: string): { text: string; images?: string[] } {
  if (typeof content === "string") {
    return { text: content };
  }
  const [texts, images]: [string[], string[]] = [[], []];
  content.forEach((part, index) => {
    const url = (part.image_url as { url?: unknown } | undefined)?.url;
    const data = typeof url === "string" ? /^data:image\/[^,]*;base64,(.*)$/s.exec(url)?.[1] : undefined;
    if (part.type === "text" && typeof part.text === "string") {
      texts.push(part.text);
    } else if (data !== undefined) {
      images.push(data);
    } else {
      throw new Error(`${field}.content[${index}]: expected a text, or an image_url with a data: URL`);
    }
  });
  return { text: texts.join("\n"), images: images.length > 0 ? images : undefined };
}

/** The answer as it arrives: one JSON object in each line. */
async function chat(response: Response, model: string, context: Context): Promise<Answer> {
  const partial = new PartialAnswer(model, context);
  let [isDone, calls] = [false, 0];
  await readLines(response, (text, isComplete) => {
    if (text.trim() === "" || !isComplete) {
      return false;
    }
    const line = parsed<Line>(text);
    if (line.error) {
      throw new Refused(`${SERVICE} reported an error: ${line.error}`, 500, partial.isEmpty());
    }
    partial.model = line.model ?? partial.model;
    for (const call of line.message?.tool_calls ?? []) {
      partial.addToolCall(calls++, undefined, call.function?.name, JSON.stringify(call.function?.arguments ?? {}));
    }
    partial.addText(line.message?.content);
    if (line.done) {
      const [prompt_tokens, completion_tokens] = [line.prompt_eval_count ?? 0, line.eval_count ?? 0];
      partial.usage = { prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens };
      partial.finishReason = calls > 0 ? "tool_calls" : (line.done_reason ?? "stop");
      isDone = true;
    }
    return isDone || partial.truncated;
  });
  return partial.finished(isDone);
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
