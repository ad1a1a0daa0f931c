/**
 * The calls of the screen Live: what the server lists, and what the event stream adds. The server's
 * lists are exact; a call of the stream has only what its events say until the next list.
 */
import type { CallQuery, CallSummary } from "@rcrt/client";
import type { CallChange, Change } from "../stream/change";
import { stream } from "../stream/stream.svelte";
import { session } from "./session.svelte";

export interface Row {
  request: string;
  requestId: string;
  tool: string;
  state: "queued" | "claimed" | "running" | "finished";
  status?: "success" | "error" | undefined;
  errorCode?: string | undefined;
  /** Milliseconds since 1970. */
  queued: number;
  claimed?: number | undefined;
  started?: number | undefined;
  finished?: number | undefined;
  duration?: number | undefined;
  agent?: string | undefined;
  session?: string | undefined;
  /** The input or the error, cut. Only of calls from the stream. */
  text?: string | undefined;
  fraction?: number | undefined;
}

export type Filter = Pick<CallQuery, "tool" | "state" | "status" | "agent_id" | "session" | "tag" | "text" | "error_code" | "since" | "until">;

/** More rows than this are dropped at the old end; they can be loaded again. */
const MOST = 20_000;
const PAGE = 200;

export class Feed {
  /** Grows with each change of the rows. */
  version = $state(0);
  /** How many rows were added in front since the beginning. */
  added = $state(0);
  loading = $state(false);
  error = $state.raw<Error | undefined>(undefined);
  hasMore = $state(false);
  paused = $state(false);
  /** Changes that arrived during the pause. */
  held = $state(0);
  /** Oldest first. */
  #rows: Row[] = [];
  #byId = new Map<string, Row>();
  #next: string | undefined;
  #held: Change[] = [];
  #refresh: ReturnType<typeof setTimeout> | undefined;
  #isClosed = false;

  constructor(readonly filter: Filter) {}

  get length(): number {
    return this.#rows.length;
  }

  /** From the newest. */
  at(index: number): Row | undefined {
    return this.#rows[this.#rows.length - 1 - index];
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#refresh);
  }

  /**
   * Reads the newest calls. Without `isGapless`, calls between them and the known ones can be
   * missing, unless both have one in common.
   */
  async load(isGapless = false): Promise<void> {
    this.loading = this.#rows.length === 0;
    try {
      const page = await session.client.calls({ ...this.filter, limit: PAGE });
      if (this.#isClosed) return;
      // With a state, calls leave the list as they go on.
      const isSame = this.filter.state === undefined;
      const meets = isSame && (isGapless || page.calls.some((call) => this.#byId.has(call.request)) || page.next == null);
      if (!meets) this.#clear();
      if (!meets || this.#next === undefined) {
        this.#next = page.next ?? undefined;
        this.hasMore = this.#next !== undefined;
      }
      for (const call of page.calls.toReversed()) this.#put(rowOf(call));
      this.error = undefined;
    } catch (error) {
      session.check(error);
      this.error = error as Error;
    } finally {
      this.loading = false;
      this.version++;
    }
  }

  /** Reads the next older page. */
  async more(): Promise<void> {
    if (this.loading || this.#next === undefined) return;
    this.loading = true;
    try {
      const page = await session.client.calls({ ...this.filter, limit: PAGE, before: this.#next });
      if (this.#isClosed) return;
      this.#next = page.next ?? undefined;
      this.hasMore = this.#next !== undefined;
      const older = page.calls.map(rowOf).filter((row) => !this.#byId.has(row.request));
      older.forEach((row) => this.#byId.set(row.request, row));
      this.#rows = older.toReversed().concat(this.#rows);
      this.error = undefined;
    } catch (error) {
      session.check(error);
      this.error = error as Error;
    } finally {
      this.loading = false;
      this.version++;
    }
  }

  apply(changes: Change[]): void {
    const calls = changes.filter((change) => change.call !== undefined);
    if (calls.length === 0) return;
    if (this.paused) {
      this.held += calls.filter((change) => change.call?.kind === "request").length;
      this.#held.push(...calls);
      // As many as are kept anyway; after that the list is read again.
      if (this.#held.length > MOST) this.#held = this.#held.slice(-MOST);
      return;
    }
    const { tool, session: conversation } = this.filter;
    for (const { call, at } of calls) {
      if (call === undefined) continue;
      if (this.#byId.has(call.request)) this.#update(call, Date.parse(at));
      else if (this.#isSimple && call.kind === "request" && matches(call, tool, conversation)) this.#put(newRow(call, Date.parse(at)));
    }
    this.version++;
    this.refreshSoon();
  }

  /** The exact times of the newest calls, at most every second. */
  refreshSoon(): void {
    this.#refresh ??= setTimeout(async () => {
      // The live stream has every call, also those between two lists.
      if (!this.paused) await this.load(this.#isSimple && stream.state === "live");
      this.#refresh = undefined;
      const isUnfinished = (index: number) => this.at(index) !== undefined && this.at(index)?.state !== "finished";
      if (!this.#isClosed && !this.paused && Array.from({ length: 50 }, (_, index) => index).some(isUnfinished)) this.refreshSoon();
    }, 1000);
  }

  setPaused(paused: boolean): void {
    this.paused = paused;
    if (paused) return;
    const held = this.#held;
    this.#held = [];
    this.held = 0;
    this.apply(held);
    void this.load();
  }

  /** The text, the tags and the agent of a call are not in its events, so the server filters. */
  get #isSimple(): boolean {
    const { text, tag, agent_id, state, status, error_code, until } = this.filter;
    return [text, tag, agent_id, state, status, error_code, until].every((value) => value === undefined);
  }

  #clear(): void {
    this.#rows = [];
    this.#byId.clear();
    this.#next = undefined;
  }

  #update(call: CallChange, at: number): void {
    const row = this.#byId.get(call.request);
    if (row === undefined || row.state === "finished") return;
    if (call.kind === "response") {
      Object.assign(row, { state: "finished", status: call.status, errorCode: call.errorCode, finished: at, duration: at - row.queued });
      if (call.text !== undefined) row.text = call.text;
    } else if (call.kind === "progress") {
      Object.assign(row, { state: "running", fraction: call.fraction, text: call.text || row.text });
    }
  }

  /** Adds a row at its place, or updates it. */
  #put(row: Row): void {
    const known = this.#byId.get(row.request);
    if (known !== undefined) {
      // A list can be older than an event that was applied meanwhile.
      const isOlder = known.state === "finished" && row.state !== "finished";
      if (!isOlder) Object.assign(known, { ...row, text: row.text ?? known.text });
      return;
    }
    let place = this.#rows.length;
    while (place > 0 && (this.#rows[place - 1]?.queued ?? 0) > row.queued) place--;
    this.#rows.splice(place, 0, row);
    this.#byId.set(row.request, row);
    this.added++;
    if (this.#rows.length <= MOST * 1.1) return;
    const dropped = this.#rows.splice(0, this.#rows.length - MOST);
    dropped.forEach((one) => this.#byId.delete(one.request));
    this.#next = this.#rows[0]?.request;
    this.hasMore = true;
  }
}

function matches(call: CallChange, tool: string | undefined, conversation: string | undefined): boolean {
  return (tool === undefined || call.tool === tool) && (conversation === undefined || call.session === conversation);
}

function newRow(call: CallChange, at: number): Row {
  return {
    request: call.request,
    requestId: call.requestId,
    tool: call.tool,
    state: "queued",
    queued: at,
    session: call.session,
    text: call.text,
  };
}

export function rowOf(call: CallSummary): Row {
  const time = (text: string | null | undefined) => (text == null ? undefined : Date.parse(text));
  return {
    request: call.request,
    requestId: call.request_id,
    tool: call.tool,
    state: call.state,
    status: call.status ?? undefined,
    errorCode: call.error_code ?? undefined,
    queued: Date.parse(call.queued_at),
    claimed: time(call.claimed_at),
    started: time(call.started_at),
    finished: time(call.finished_at),
    duration: call.duration_ms ?? undefined,
    agent: call.agent_id ?? undefined,
    session: call.session ?? undefined,
  };
}
