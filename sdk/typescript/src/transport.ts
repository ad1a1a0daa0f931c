/** One request and its response, with retries that are safe. */
import type { paths } from "./api.js";
import type { Credentials } from "./credentials.js";
import { Tokens } from "./credentials.js";
import { ANSWERS } from "./answers.js";
import { foreign, invalidArgument, problemOf, ProblemError, RcrtError, Unreachable } from "./errors.js";
import { checkOptions, type Names } from "./options.js";
import { alarm, backoff, checkedTime, linked, pause } from "./pause.js";
import type { GivenToken } from "./shapes.js";

export type Method = "get" | "post" | "put" | "patch" | "delete";

/** The paths that have a method. */
export type PathsOf<M extends Method> = {
  [P in keyof paths]: paths[P] extends { [K in M]: { responses: unknown } } ? P : never;
}[keyof paths];

type Operation<M extends Method, P extends PathsOf<M>> = paths[P] extends { [K in M]: infer O } ? O : never;
type JsonOf<R> = R extends { content: { "application/json": infer B } } ? B : never;
/** The body of a successful response. */
export type AnswerOf<M extends Method, P extends PathsOf<M>> =
  Operation<M, P> extends { responses: infer R } ? JsonOf<R[keyof R & (200 | 201 | 202)]> : never;
export type BodyOf<M extends Method, P extends PathsOf<M>> =
  Operation<M, P> extends { requestBody?: { content: { "application/json": infer B } } } ? B : undefined;

/** Options of every method. */
export interface RequestOptions {
  /** Aborts the request. The promise rejects with the signal's reason. */
  signal?: AbortSignal;
  /** The time limit of one attempt in milliseconds. The default is a minute. */
  timeoutMs?: number;
}

export const REQUEST_OPTIONS: Names<RequestOptions> = { signal: true, timeoutMs: true };

export interface Sending extends RequestOptions {
  path?: Record<string, string>;
  query?: Record<string, string | number | boolean | readonly string[] | undefined>;
  headers?: Record<string, string | undefined>;
  body?: unknown;
  /**
   * The request is idempotent. Otherwise it is retried only if the server certainly did not do it.
   */
  again?: boolean;
  /** Without a token. */
  anonymous?: boolean;
  /** Instead of the client's own `retryMs`. */
  retryMs?: number;
}

const SENDING: Names<Sending> = { ...REQUEST_OPTIONS, path: true, query: true, headers: true, body: true, again: true, anonymous: true, retryMs: true };

/** A response with its whole body. */
export interface Answer {
  status: number;
  statusText: string;
  headers: Headers;
  text: string;
}

/**
 * The attempts of a request to a server that has never answered this client. With the pauses, that
 * is about three seconds.
 */
const ATTEMPTS = 6;
/** How long the client tries to reach a server again that has answered it before. */
export const RETRY_MS = 30_000;
const ANSWER_MS = 60_000;
/**
 * If the server asks for a longer pause than this, the client throws its error instead of waiting.
 */
export const LONGEST_WAIT_MS = 60_000;
/** Fields that this client reads itself, so no answer can lack them. */
const USED = new Set(["deleted", "expires_in", "number", "request", "rows", "status", "token", "tool", "tools", "value", "version"]);
/** Errors of connections that were never made. */
const NOT_SENT = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH", "UND_ERR_CONNECT_TIMEOUT"]);

/** A version in the form of `If-Match`. */
export function etag(version: number): string {
  return `"${version}"`;
}

/** A key of the client's own. Not `randomUUID`, which pages without TLS do not have. */
export function newKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export class Transport {
  readonly base: string;
  readonly tokens: Tokens;
  readonly retryMs: number;
  /** Whether an RCRT server has answered at this address. */
  worked = false;
  readonly #fetch: typeof fetch;

  constructor(url: string | URL, credentials: Credentials, retryMs: number = RETRY_MS, fetching: typeof fetch = fetch) {
    const base = serverUrl(url);
    this.retryMs = checkedRetry(retryMs);
    this.base = `${base.origin}${base.pathname.replace(/\/+$/, "")}`;
    // Browsers require that fetch is called on the window.
    this.#fetch = (input, init) => fetching(input, init);
    this.tokens = new Tokens(credentials, async (body) => {
      const given: GivenToken = await this.json("post", "/auth/token", { body, anonymous: true, again: true });
      if (typeof given.token !== "string" || typeof given.expires_in !== "number") throw foreign(this.base, "it has no token", given);
      return given;
    });
  }

  /** The body of a successful response. */
  async json<M extends Method, P extends PathsOf<M>>(method: M, path: P, sending: Sending = {}): Promise<AnswerOf<M, P>> {
    return this.read<AnswerOf<M, P>>(method, path, await this.exchange(method, path, sending));
  }

  /** The body of a successful response, if it can be from this route. */
  read<T>(method: Method, path: keyof paths, answer: Answer): T {
    const body = this.parse(answer);
    const route = `${method.toUpperCase()} ${path}`;
    const expected = [answer.status, 200, 201].map((status) => ANSWERS[`${route} ${status}`]).find((found) => found !== undefined);
    if (expected === undefined) return body as T;
    const [kind, fields] = expected;
    if (kind === "list" && !Array.isArray(body)) throw foreign(this.base, "it is not a list", body);
    for (const one of kind === "list" ? (body as unknown[]) : [body]) {
      if (typeof one !== "object" || one === null || Array.isArray(one)) throw foreign(this.base, "it is not an object", body);
      const missing = fields.filter((field) => !(field in one));
      // Some fields can be missing in the answer of an older server.
      if (missing.length * 2 > fields.length || missing.some((field) => USED.has(field))) {
        throw foreign(this.base, `it lacks ${missing.join(", ")}`, body);
      }
    }
    return body as T;
  }

  parse({ text }: Answer): unknown {
    try {
      return JSON.parse(text);
    } catch (error) {
      throw foreign(this.base, `it is not JSON: ${JSON.stringify(text.slice(0, 40))}`, error);
    }
  }

  /**
   * Deletes the resource at a path. If a retry finds nothing there, the first attempt deleted it.
   */
  async remove<P extends PathsOf<"delete">>(path: P, sending: Sending): Promise<void> {
    const state = { maybeDone: false };
    try {
      this.read("delete", path, await this.exchange("delete", path, { ...sending, again: true }, state));
    } catch (error) {
      if (!(state.maybeDone && error instanceof ProblemError && error.code === "not_found")) throw error;
    }
  }

  /** Sends until there is a final response, and returns it if it is a success. */
  async exchange(
    method: Method,
    path: keyof paths,
    sending: Sending,
    state: { maybeDone: boolean } = { maybeDone: false },
  ): Promise<Answer> {
    // The methods pass their own options on.
    checkOptions(sending, SENDING, REQUEST_OPTIONS);
    const begun = performance.now();
    for (let attempt = 1; ; attempt++) {
      const { error, maybeDone, answer } = await this.#send(method, path, sending);
      if (answer !== undefined) return answer;
      const wait = Math.max(backoff(attempt), error instanceof ProblemError ? (error.retryAfterMs ?? 0) : 0);
      const over = this.givesUp(attempt, performance.now() - begun + wait, sending.retryMs ?? this.retryMs);
      const again = error.retryable && !over && wait <= LONGEST_WAIT_MS && (sending.again === true || !maybeDone);
      if (!again) throw error;
      state.maybeDone ||= maybeDone;
      await pause(wait, sending.signal);
    }
  }

  /**
   * Whether to end the attempts after so many failures in this time. A server that never answered
   * has probably another address.
   */
  givesUp(failures: number, ms: number, retryMs: number): boolean {
    return failures >= ATTEMPTS && (!this.worked || ms > retryMs);
  }

  async #send(
    method: Method,
    path: keyof paths,
    sending: Sending,
  ): Promise<{ answer: Answer; error?: never; maybeDone?: never } | { answer?: never; error: RcrtError; maybeDone: boolean }> {
    const url = this.url(path, sending);
    for (let renewed = false; ; renewed = true) {
      const token = sending.anonymous ? undefined : await this.tokens.token();
      let answer: Answer;
      try {
        answer = await this.#whole(method, url, sending, token);
      } catch (error) {
        sending.signal?.throwIfAborted();
        if (error instanceof RcrtError) throw error;
        return { error: unanswered(this.base, error), maybeDone: !NOT_SENT.has(codeOf(error)) };
      }
      if (answer.status >= 200 && answer.status < 300) {
        this.worked = true;
        return { answer };
      }
      // A token can expire early, or the server's key can change, so try one new token.
      if (answer.status === 401 && !renewed && token !== undefined && this.tokens.refused(token)) continue;
      const error = problemOf(this.base, answer);
      this.worked ||= error.code !== "foreign";
      return { error, maybeDone: answer.status >= 500 };
    }
  }

  /** The response with its whole body, within the time limit. */
  async #whole(method: Method, url: string, sending: Sending, token: string | undefined): Promise<Answer> {
    const time = checkedTime("timeoutMs", sending.timeoutMs ?? ANSWER_MS);
    const { controller, release } = linked(sending.signal);
    const stop = alarm(time, () => controller.abort(new Error(`no response in ${time} ms`)));
    try {
      return await whole(await this.open(method, url, sending, token, controller.signal));
    } finally {
      stop();
      release();
    }
  }

  /** One attempt. The body of its response is not read yet. */
  async open(
    method: Method,
    url: string,
    sending: Sending,
    token: string | undefined,
    signal: AbortSignal,
  ): Promise<Response> {
    return await this.#fetch(url, { ...written(method, sending, token), signal });
  }

  url(path: keyof paths, sending: Pick<Sending, "path" | "query">): string {
    const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => {
      const value = sending.path?.[name];
      // An empty segment would be another path, and so would these two.
      if (value === undefined || value === "" || value === "." || value === "..") {
        throw invalidArgument(`${name} must not be empty, . or ..; it is ${JSON.stringify(value)}`);
      }
      try {
        return encodeURIComponent(value);
      } catch (error) {
        throw invalidArgument(`${name} is not text that can be in a URL: ${JSON.stringify(value)}`, error);
      }
    });
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(sending.query ?? {})) {
      if (value === undefined) continue;
      for (const one of Array.isArray(value) ? value : [value]) query.append(name, String(one));
    }
    // Not `size`, which older browsers do not have.
    const text = query.toString();
    return `${this.base}${filled}${text === "" ? "" : `?${text}`}`;
  }
}

export async function whole(answer: Response): Promise<Answer> {
  return { status: answer.status, statusText: answer.statusText, headers: answer.headers, text: await answer.text() };
}

/** The failure of a request that got no response. */
export function unanswered(base: string, error: unknown): Unreachable {
  const cause = (error as { cause?: unknown } | undefined)?.cause;
  const said = cause instanceof Error && cause.message !== "" ? cause : error;
  const why = codeOf(error) || (said instanceof Error ? said.message : String(said));
  return new Unreachable(`no answer from ${base}: ${why}; is the server running?`, { cause: error ?? why });
}

/** The system's code of the error that `fetch` wraps. */
function codeOf(error: unknown): string {
  const code = (error as { cause?: { code?: unknown } } | undefined)?.cause?.code;
  return typeof code === "string" ? code : "";
}

/** Time for attempts, which can also be endless. */
export function checkedRetry(ms: number): number {
  if (typeof ms !== "number" || !(ms >= 0)) throw invalidArgument(`retryMs must be milliseconds, 0 or more; it is ${String(ms)}`);
  return ms;
}

function serverUrl(url: string | URL): URL {
  let read: URL | undefined;
  let cause: unknown = url;
  try {
    read = new URL(url);
  } catch (error) {
    cause = error;
  }
  if (read?.protocol === "http:" || read?.protocol === "https:") return read;
  const message = `${JSON.stringify(String(url))} is not a server URL; write it with its scheme, such as http://127.0.0.1:8081`;
  throw new RcrtError(message, "invalid_url", false, { cause });
}

/** The request as `fetch` takes it. */
function written(method: Method, sending: Sending, token: string | undefined): RequestInit {
  const headers = new Headers();
  const set = (name: string, value: string) => {
    try {
      headers.set(name, value);
    } catch (error) {
      throw invalidArgument(`the value of ${name} cannot be sent as a header`, error);
    }
  };
  for (const [name, value] of Object.entries(sending.headers ?? {})) {
    if (value !== undefined) set(name, value);
  }
  if (token !== undefined) set("authorization", `Bearer ${token}`);
  const init: RequestInit = { method: method.toUpperCase(), headers, redirect: "manual", credentials: "omit" };
  if (sending.body === undefined) return init;
  set("content-type", "application/json");
  init.body = asJson("the body", sending.body);
  return init;
}

export function asJson(name: string, value: unknown): string {
  let text: string | undefined;
  let cause: unknown = value;
  try {
    text = JSON.stringify(value);
  } catch (error) {
    cause = error;
  }
  // A function or a symbol has none.
  if (text !== undefined) return text;
  throw invalidArgument(`${name} is not JSON: ${cause instanceof Error ? cause.message : typeof value}`, cause);
}
