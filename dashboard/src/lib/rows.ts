/** The rows of the screen Live, in the order of the server's lists: that of the requests' ids. */
import type { CallSummary } from "@rcrt/client";
import type { CallChange } from "../stream/change";

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

export class Rows {
  /** Oldest first. A row is replaced when it changes, so that an unchanged one is not drawn again. */
  #rows: Row[] = [];
  /** The index, from the newest, of the row that stays in its place when others come or go. */
  pivot = 0;
  /** How many rows came in front of that row, without those that went. */
  added = 0;

  get length(): number {
    return this.#rows.length;
  }

  /** From the newest. */
  at(index: number): Row | undefined {
    return this.#rows[this.#rows.length - 1 - index];
  }

  get(id: string): Row | undefined {
    const row = this.#rows[this.#place(id)];
    return row?.request === id ? row : undefined;
  }

  /** Those with an id from `floor` until before `before`. */
  between(floor: string, before: string | undefined): Row[] {
    return this.#rows.slice(this.#place(floor), before === undefined ? undefined : this.#place(before));
  }

  get unfinished(): Row[] {
    return this.#rows.filter((row) => row.state !== "finished");
  }

  put(row: Row): void {
    const place = this.#place(row.request);
    if (this.#rows[place]?.request === row.request) {
      this.#rows[place] = row;
      return;
    }
    const isInFront = this.#rows.length > this.pivot && this.#rows.length - place <= this.pivot;
    this.#rows.splice(place, 0, row);
    if (isInFront) this.#move(1);
  }

  /** Adds rows that are older than all others, the newest of them first. */
  append(older: Row[]): void {
    this.#rows = older.toReversed().concat(this.#rows);
  }

  remove(id: string): void {
    const place = this.#place(id);
    if (this.#rows[place]?.request !== id) return;
    if (this.#rows.length - 1 - place < this.pivot) this.#move(-1);
    this.#rows.splice(place, 1);
  }

  /** Drops those with a smaller id. */
  cut(floor: string): void {
    this.#rows.splice(0, this.#place(floor));
  }

  /** How many have a smaller id. */
  #place(id: string): number {
    let [low, high] = [0, this.#rows.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#rows[middle]?.request ?? "") < id) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #move(by: number): void {
    this.added += by;
    this.pivot += by;
  }
}

/** The row of a call of which only its first event is known. */
export function newRow(call: CallChange, at: number): Row {
  const { request, requestId, tool, session, text } = call;
  return { request, requestId, tool, state: "queued", queued: at, session, text };
}

/** The row after this event. What a list said of a finished call is more exact. */
export function changed(row: Row, call: CallChange, at: number): Row {
  if (call.kind === "request") return row.text === undefined ? { ...row, text: call.text } : row;
  if (row.state === "finished") return call.text === undefined ? row : { ...row, text: call.text };
  const text = call.text || row.text;
  if (call.kind === "progress") return { ...row, state: "running", fraction: call.fraction, text };
  const { status, errorCode } = call;
  return { ...row, state: "finished", status, errorCode, finished: at, duration: at - row.queued, text };
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
