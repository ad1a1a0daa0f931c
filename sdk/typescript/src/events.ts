/**
 * A subscription across connections: each event once, in order, also across restarts of the server.
 */
import { foreign, invalidArgument, problemOf, ProblemError, RcrtError, Unreachable } from "./errors.js";
import { checkOptions, type Names } from "./options.js";
import { alarm, backoff, checkedTime, linked, pause } from "./pause.js";
import type { Selector } from "./shapes.js";
import { SseParser, type Message } from "./sse.js";
import { asJson, checkedRetry, LONGEST_WAIT_MS, unanswered, whole, type Transport } from "./transport.js";

/** One change of one record. (The OpenAPI document does not describe the messages of a stream.) */
export interface BreadcrumbEvent {
  type: "breadcrumb.created" | "breadcrumb.updated" | "breadcrumb.deleted";
  /** The event's number. Pass it as `after` to resume after this event. */
  id: string;
  breadcrumb_id: string;
  owner_id: string;
  version: number;
  tags: string[];
  schema_name?: string | null;
  updated_at: string;
  /** The record's context after the change (before a deletion). */
  context: Record<string, unknown>;
  /** The record is secret, so the event has no context. */
  redacted?: boolean;
}

/**
 * The subscriber was away for longer than events are retained: those between `after` and `first`
 * were deleted.
 */
export interface Missed {
  type: "missed";
  /** Pass this as the position from which a stream continues. */
  id: string;
  /** The number after which events are missing. */
  after: number;
  /** The number of the oldest event that still exists. */
  first: number;
}

export type EventItem = BreadcrumbEvent | Missed;

export interface FollowOptions {
  /**
   * The number of the last event seen. The default is from now on. 0 is everything that is
   * retained.
   */
  after?: string | number;
  /** Only events of records that match this selector. */
  filters?: Selector;
  /** The agent whose selectors count. The default is the caller. */
  agentId?: string;
  /** Everything that the caller can see, whatever its selectors are. */
  all?: boolean;
  /** Closes the stream: the loop that reads it gets the signal's reason as an error. */
  signal?: AbortSignal;
  /**
   * After how many milliseconds without any message, even a ping, a connection counts as lost. The
   * default is 45,000.
   */
  silenceMs?: number;
  /**
   * How long a lost connection is tried again, in milliseconds and at least six times, before the
   * stream fails. By default without limit once the stream was connected, and else for the client's
   * `retryMs`.
   */
  retryMs?: number;
  /** Called for each lost connection, with the reason, before the next one is made. */
  onReconnect?: (why: Error) => void;
}

const FOLLOW_OPTIONS: Names<FollowOptions> = {
  after: true,
  filters: true,
  agentId: true,
  all: true,
  signal: true,
  silenceMs: true,
  retryMs: true,
  onReconnect: true,
};

const SILENCE_MS = 45_000;
/** After a connection of at least this time the next one is made at once. */
const GOOD_MS = 5_000;
/** How long to look for a server that has never answered. */
const QUICK_MS = 3_000;
/** How often in a row the same event can be unreadable before the stream gives up. */
const UNREADABLE = 5;

/**
 * Follows events until the loop is left, the signal is aborted, or the server refuses permanently.
 */
export async function* follow(transport: Transport, options: FollowOptions): AsyncGenerator<EventItem, void, void> {
  checkOptions(options, FOLLOW_OPTIONS);
  const signal = options.signal;
  const asked: Asked = {
    query: {
      filters: options.filters === undefined ? undefined : asJson("filters", options.filters),
      agent_id: options.agentId,
      all: options.all,
    },
    silence: checkedTime("silenceMs", options.silenceMs ?? SILENCE_MS),
    signal,
  };
  /**
   * The newest number seen. Always set after a connection was made: the first ping has the stream's
   * start.
   */
  let last: bigint | undefined = options.after === undefined ? undefined : number(String(options.after));
  const retryMs = options.retryMs === undefined ? undefined : checkedRetry(options.retryMs);
  let connected = false;
  let failures = 0;
  /** Since when no connection has worked. */
  let lost = performance.now();
  let unreadable = 0;
  for (;;) {
    signal?.throwIfAborted();
    const began = performance.now();
    let heard = false;
    let why: Error;
    try {
      for await (const message of connection(transport, asked, last)) {
        connected = heard = true;
        const item = read(message);
        const id = /^\d+$/.test(message.id) ? BigInt(message.id) : undefined;
        if (item === undefined) {
          // Everything up to a ping's number has been seen.
          if (id !== undefined && (last === undefined || id > last)) last = id;
          continue;
        }
        if (id === undefined) throw new TypeError(`${JSON.stringify(message.id)} is not an event number`);
        failures = 0;
        unreadable = 0;
        if (last !== undefined && id <= last && item.type !== "missed") continue;
        last = id;
        yield { ...item, id: message.id } as EventItem;
      }
      why = new Unreachable("the server ended the event stream");
    } catch (error) {
      signal?.throwIfAborted();
      if (error instanceof SyntaxError || error instanceof TypeError) {
        if (++unreadable >= UNREADABLE) {
          throw new RcrtError(`the event after ${last ?? 0n} cannot be read: ${error.message}`, "foreign", false, { cause: error });
        }
      } else if (error instanceof RcrtError && !error.retryable && !passing(error)) throw error;
      why = error as Error;
    }
    if (heard) lost = performance.now();
    if (heard && lost - began > GOOD_MS) failures = 0;
    failures++;
    const limit = retryMs ?? (connected ? Infinity : transport.retryMs);
    const gone = performance.now() - lost;
    // An attempt can be long by itself: it can include those for a token.
    if (transport.givesUp(failures, gone, limit) || (!transport.worked && gone > QUICK_MS)) throw why;
    options.onReconnect?.(why);
    const wanted = why instanceof ProblemError ? (why.retryAfterMs ?? 0) : 0;
    await pause(Math.max(backoff(failures), Math.min(wanted, LONGEST_WAIT_MS)), signal);
  }
}

/** What each connection of a stream asks for. */
interface Asked {
  query: Record<string, string | boolean | undefined>;
  silence: number;
  signal: AbortSignal | undefined;
}

/** A temporary fault, which can end when the server is back. */
function passing(error: RcrtError): boolean {
  return error instanceof ProblemError && error.status >= 500;
}

function number(text: string): bigint {
  if (!/^\d+$/.test(text)) throw invalidArgument(`after must be the number of an event, 0 or more; it is ${JSON.stringify(text)}`);
  return BigInt(text);
}

/** The message as an item; `undefined` for a ping and for kinds that this client does not know. */
function read(message: Message): EventItem | undefined {
  const item = JSON.parse(message.data) as EventItem;
  if (typeof item?.type !== "string") throw new TypeError("an event without a type");
  return item.type.startsWith("breadcrumb.") || item.type === "missed" ? item : undefined;
}

/** The messages of one connection. */
async function* connection(transport: Transport, asked: Asked, last: bigint | undefined): AsyncGenerator<Message> {
  const { controller, release } = linked(asked.signal);
  const { silence } = asked;
  const silent = () => controller.abort(new Unreachable(`nothing came for ${silence} ms, not even a ping`));
  let stop = alarm(silence, silent);
  try {
    const answer = await open(transport, asked, last, controller.signal);
    if (answer.body === null) throw new Unreachable("the event stream has no body");
    const reader = answer.body.getReader();
    const text = new TextDecoder("utf-8", { ignoreBOM: true });
    const parser = new SseParser();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      stop();
      stop = alarm(silence, silent);
      yield* parser.read(text.decode(value, { stream: true }));
    }
  } catch (error) {
    asked.signal?.throwIfAborted();
    if (controller.signal.aborted) throw controller.signal.reason;
    if (error instanceof RcrtError) throw error;
    throw new Unreachable(`the event stream broke: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
  } finally {
    stop();
    release();
    controller.abort();
  }
}

async function open(transport: Transport, asked: Asked, last: bigint | undefined, signal: AbortSignal): Promise<Response> {
  const sending = { headers: { accept: "text/event-stream", "last-event-id": last?.toString() }, query: asked.query };
  const url = transport.url("/events/stream", sending);
  for (let renewed = false; ; renewed = true) {
    const token = await transport.tokens.token();
    let answer: Response;
    try {
      answer = await transport.open("get", url, sending, token, signal);
    } catch (error) {
      throw error instanceof RcrtError ? error : unanswered(transport.base, error);
    }
    if (answer.ok) {
      const kind = answer.headers.get("content-type") ?? "none";
      if (kind.startsWith("text/event-stream")) {
        transport.worked = true;
        return answer;
      }
      await answer.body?.cancel();
      throw foreign(transport.base, `its type is ${kind}, not an event stream`);
    }
    if (answer.status === 401 && !renewed && transport.tokens.refused(token)) {
      await answer.body?.cancel();
      continue;
    }
    throw problemOf(transport.base, await whole(answer));
  }
}
