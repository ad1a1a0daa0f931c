/**
 * The calls of the screen Live: what the server lists, and what the event stream adds. It is always
 * one piece of the server's list, from the newest call to the floor. A row of the stream has only
 * what its events say until it is read.
 */
import type { CallSummary } from "@rcrt/client";
import type { Change } from "../stream/change";
import { isOfEvents, mayMatch, type Filter } from "./call-filter";
import { changed, newRow, rowOf, Rows, type Row } from "./rows";
import { session } from "./session.svelte";

/** More rows than this are dropped at the old end; they can be loaded again. */
const MOST = 20_000;
/** The same while older rows are being looked at. */
const MOST_READ = 100_000;
/** The calls of a page; of one that is not at an end of the list. */
const PAGE = 200;
const LARGE_PAGE = 500;
/** Pages that bring no missing call, but exact rows: as many in one run. */
const EXACT_PAGES = 10;
/** Pages that look for the end of a gap. With words, the server examines few calls for each. */
const GAP_PAGES = 100;
/** A call can be written this long after its id was made. */
const LATE_MS = 10_000;
const REFRESH_MS = 1000;
/** So many rows from the one that is looked at are on the screen. */
const VIEW = 60;

export class Feed {
  /** Grows with each change of the rows. */
  version = $state(0);
  /** An older page is being read. */
  loading = $state(false);
  error = $state.raw<Error | undefined>(undefined);
  hasMore = $state(false);
  /** The last page of older calls had none that matches: the next one is read on request. */
  isSparse = $state(false);
  /** How many calls of a gap have been read, while it is read. */
  missed = $state(0);
  paused = $state(false);
  /** The calls that came during the pause, and whether there can be more. */
  held = $state(0);
  isHeldMore = $state(false);
  #rows = new Rows();
  /** The calls from this id on are here. Nothing was read yet without it; all was, if it is "". */
  #floor: string | undefined;
  /** The calls after this id can be missing. */
  #gap: string | undefined;
  /** Calls of which events came. Their rows are read, or they may match the filter now. */
  #inexact = new Set<string>();
  #held: Change[] = [];
  #isFull = false;
  #most = MOST;
  #isAtTop = true;
  #turn: Promise<void> = Promise.resolve();
  #next: Promise<void> | undefined;
  #refresh: ReturnType<typeof setTimeout> | undefined;
  #isClosed = false;
  /** Whether the events say which calls match. */
  readonly #isOfEvents: boolean;

  constructor(readonly filter: Filter) {
    this.#isOfEvents = isOfEvents(filter);
  }

  get length(): number {
    return this.version >= 0 ? this.#rows.length : 0;
  }

  /** Grows with each row that is added in front of those that are looked at. */
  get added(): number {
    return this.version >= 0 ? this.#rows.added : 0;
  }

  /** From the newest. A row that did not change is the same object. */
  at(index: number): Row | undefined {
    return this.version >= 0 ? this.#rows.at(index) : undefined;
  }

  /** The row at this index is looked at, or the first on the screen. 0 is the newest. */
  look(index: number): void {
    this.#rows.pivot = index;
    this.#isAtTop = index === 0;
    if (this.#inView.length > 0) this.refreshSoon();
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#refresh);
  }

  /** Reads the newest calls, those of a gap, and what else is not exact. */
  load(): Promise<void> {
    return (this.#next ??= this.#inTurn(async () => {
      this.#next = undefined;
      await this.#read();
    }));
  }

  /** The same after calls, and ends of calls, can have been missed. */
  reload(): Promise<void> {
    this.#miss(!this.#isOfEvents);
    this.isHeldMore = this.paused;
    return this.paused ? Promise.resolve() : this.load();
  }

  /** The same without a stream, which says what changes: the newest calls and the unfinished ones. */
  poll(): Promise<void> {
    this.#miss(false);
    return this.load();
  }

  /** Reads the next older page. */
  async more(): Promise<void> {
    if (this.loading || !this.hasMore || this.error !== undefined) return;
    this.loading = true;
    await this.#inTurn(async () => {
      const before = this.#floor;
      if (!before) return;
      try {
        const page = await session.client.calls({ ...this.filter, limit: PAGE, before });
        this.#rows.append(page.calls.map(rowOf));
        this.#most = Math.max(this.#most, this.#rows.length);
        this.#become(page.next ?? "");
        this.isSparse = page.calls.length === 0;
      } catch (error) {
        this.#fail(error);
      }
    });
    this.loading = false;
    this.version++;
  }

  apply(changes: Change[]): void {
    const calls = changes.filter((change) => change.call !== undefined);
    if (calls.length === 0) return;
    if (this.paused) this.#hold(calls);
    else this.#apply(calls);
  }

  /** What is not exact is read, at most every second. */
  refreshSoon(): void {
    this.#refresh ??= setTimeout(() => {
      this.#refresh = undefined;
      void (this.paused ? this.#count() : this.load());
    }, REFRESH_MS);
  }

  setPaused(paused: boolean): void {
    this.paused = paused;
    if (paused) return;
    const held = this.#held;
    this.#held = [];
    this.#isFull = false;
    this.held = 0;
    this.isHeldMore = false;
    this.#apply(held);
    void this.load();
  }

  #hold(calls: Change[]): void {
    if (this.#isOfEvents) this.held += calls.filter(({ call, at }) => call?.kind === "request" && mayMatch(this.filter, call, Date.parse(at))).length;
    else this.refreshSoon();
    if (!this.#isFull) this.#held.push(...calls);
    if (this.#held.length <= MOST) return;
    // More than are kept: they are read when the pause ends.
    this.#held = [];
    this.#isFull = true;
    this.#miss(!this.#isOfEvents);
  }

  /** How many calls a pause holds back, if only the server can tell. */
  #count(): Promise<void> {
    return this.#inTurn(async () => {
      if (this.#isOfEvents || !this.paused) return;
      try {
        const page = await session.client.calls({ ...this.filter, limit: PAGE });
        if (!this.paused) return;
        this.held = page.calls.filter((call) => call.request >= (this.#floor ?? "") && this.#rows.get(call.request) === undefined).length;
        this.isHeldMore = page.next != null && this.held === page.calls.length;
      } catch (error) {
        this.#fail(error);
      }
    });
  }

  #apply(changes: Change[]): void {
    for (const { call, at } of changes) {
      if (call === undefined) continue;
      const known = this.#rows.get(call.request);
      if (known !== undefined) {
        this.#rows.put(changed(known, call, Date.parse(at)));
        if (call.kind === "response") this.#inexact.add(call.request);
      } else if (call.request >= (this.#floor ?? "") && mayMatch(this.filter, call, Date.parse(at))) {
        this.#inexact.add(call.request);
        if (this.#isOfEvents) this.#rows.put(newRow(call, Date.parse(at)));
      }
    }
    if (this.#inexact.size > MOST) {
      this.#inexact.clear();
      this.#miss(true);
    }
    this.#trim();
    this.version++;
    this.refreshSoon();
  }

  /** Tasks that read run one after another. */
  #inTurn(task: () => Promise<void>): Promise<void> {
    return (this.#turn = this.#turn.then(() => (this.#isClosed ? undefined : task())));
  }

  async #read(): Promise<void> {
    const gap = this.#gap;
    const wanted = this.#inexact;
    for (const { request } of this.#inView) wanted.add(request);
    // What comes while a page is read is not in it.
    this.#gap = undefined;
    this.#inexact = new Set();
    try {
      await this.#pages(gap, wanted);
      this.error = undefined;
    } catch (error) {
      this.#gap = gap ?? this.#gap;
      this.#fail(error);
    } finally {
      for (const id of wanted) if (id >= (this.#floor ?? "")) this.#inexact.add(id);
      this.missed = 0;
      this.version++;
    }
    if (!this.#isClosed && this.#isUnsettled) this.refreshSoon();
  }

  /** Reads the newest page, on to the end of the gap, and then only pages with wanted calls. */
  async #pages(gap: string | undefined, wanted: Set<string>): Promise<void> {
    let before: string | undefined;
    let isGap = gap !== undefined && this.#floor !== undefined;
    for (let [pages, read] = [1, 0]; !this.#isClosed; pages++) {
      const limit = before === undefined ? PAGE : LARGE_PAGE;
      const page = await session.client.calls({ ...this.filter, limit, ...(before === undefined ? {} : { before }) });
      if (this.#isClosed) return;
      const floor = page.next ?? "";
      this.#take(page.calls, floor, before, wanted);
      read += page.calls.length;
      if (this.#floor === undefined) this.#become(floor);
      isGap &&= floor > (gap ?? "");
      if (isGap && (read >= MOST || pages >= GAP_PAGES)) {
        // The list goes on below the gap: its older part is loaded again when it is looked for.
        this.#become(floor);
        return;
      }
      if (isGap) {
        before = floor;
        this.missed = read;
      } else {
        const below = [...wanted].filter((id) => id < floor && id >= (this.#floor ?? ""));
        if (below.length === 0 || pages >= EXACT_PAGES) return;
        before = successor(below.reduce(larger));
      }
      this.version++;
    }
  }

  /** Takes what the server says of the calls from `floor` until before `before`. */
  #take(calls: CallSummary[], floor: string, before: string | undefined, wanted: Set<string>): void {
    const listed = new Set(calls.map((call) => call.request));
    // Calls leave a filtered list, for example that of running calls.
    if (!this.#isOfEvents) for (const { request } of this.#rows.between(floor, before)) if (!listed.has(request)) this.#rows.remove(request);
    for (const call of calls.toReversed()) {
      const row = rowOf(call);
      const known = this.#rows.get(row.request);
      // An event that came meanwhile is newer than the page.
      if (known?.state === "finished" && row.state !== "finished") continue;
      this.#rows.put({ ...row, text: known?.text, fraction: known?.fraction });
    }
    for (const id of wanted) if (id >= floor && (before === undefined || id < before)) wanted.delete(id);
  }

  /** Calls after the newest one can be missing; with `isWhole`, anywhere in the list. */
  #miss(isWhole: boolean): void {
    if (this.#floor === undefined) return;
    const newest = this.#rows.at(0)?.request;
    const from = isWhole || newest === undefined ? this.#floor : larger(earlier(newest), this.#floor);
    if (this.#gap === undefined || from < this.#gap) this.#gap = from;
    for (const { request } of this.#rows.unfinished) this.#inexact.add(request);
  }

  #trim(): void {
    const most = this.#isAtTop ? this.#most : Math.max(this.#most, MOST_READ);
    const oldest = this.#rows.length > most * 1.1 ? this.#rows.at(most - 1)?.request : undefined;
    if (oldest !== undefined) this.#become(oldest);
  }

  /** The calls from this id on are here, and no older ones. */
  #become(floor: string): void {
    this.#floor = floor;
    this.hasMore = floor !== "";
    this.#rows.cut(floor);
  }

  #fail(error: unknown): void {
    session.check(error);
    this.error = error instanceof Error ? error : new Error(String(error));
  }

  /** The unfinished calls on the screen: no event says that a runner claimed or started them. */
  get #inView(): Row[] {
    const seen = Array.from({ length: VIEW }, (_, index) => this.#rows.at(this.#rows.pivot + index));
    return seen.filter((row): row is Row => row !== undefined && row.state !== "finished");
  }

  get #isUnsettled(): boolean {
    const { state } = this.filter;
    return this.#inexact.size > 0 || this.#inView.length > 0 || (state !== undefined && state !== "finished");
  }
}

const larger = (a: string, b: string) => (a > b ? a : b);

/** The next larger id. */
function successor(id: string): string {
  return uuid(BigInt(`0x${id.replaceAll("-", "")}`) + 1n);
}

/** The least id that was made this long before. Its first 48 bits are milliseconds. */
function earlier(id: string): string {
  const ms = BigInt(`0x${id.replaceAll("-", "").slice(0, 12)}`) - BigInt(LATE_MS);
  return uuid((ms > 0n ? ms : 0n) << 80n);
}

function uuid(number: bigint): string {
  const text = number.toString(16).padStart(32, "0").slice(-32);
  return [text.slice(0, 8), text.slice(8, 12), text.slice(12, 16), text.slice(16, 20), text.slice(20)].join("-");
}
