/** The changes of the tenant's records, for the screens of this tab. */
import { server } from "../lib/session.svelte";
import type { Change } from "./change";
import { Source, type Connection, type Message } from "./source";
import type { Request } from "./worker";

export type Listener = (changes: Change[]) => void;

/** How long a list waits after a change before it is read again. */
const REFRESH_MS = 500;

class Stream {
  state = $state<Connection>("connecting");
  why = $state("");
  /** How long after its write the newest change was here, in milliseconds, and when. */
  lag = $state.raw<{ ms: number; at: number } | undefined>(undefined);
  /** With what reads the list again: changes before the stream was connected are not in it. */
  #listeners = new Map<Listener, () => void>();
  #worker: SharedWorker | undefined;
  #source: Source | undefined;
  /** The browser has no shared worker for this page. */
  #isAlone = false;
  #token: string | undefined;

  constructor() {
    // A page in the browser's cache of pages gets no messages.
    addEventListener("pagehide", () => this.#close());
    addEventListener("pageshow", (event) => {
      if (event.persisted && this.#token !== undefined) this.open(this.#token);
    });
  }

  open(token: string): void {
    this.#token = token;
    this.#close();
    this.state = "connecting";
    try {
      if (this.#isAlone) return this.#alone(token);
      this.#worker ??= new SharedWorker(new URL("./worker.ts", import.meta.url), { type: "module", name: "rcrt-events" });
      this.#worker.port.onmessage = ({ data }: MessageEvent<Message>) => this.#receive(data);
      // For example, a policy of the browser against workers.
      this.#worker.onerror = () => this.#alone(token);
      this.#post({ type: "open", url: server, token });
    } catch {
      this.#alone(token);
    }
  }

  /** For a session that ended. */
  end(): void {
    this.#token = undefined;
    this.#close();
  }

  /**
   * Calls `listener` with each batch of changes, and `reload` when changes can have been missed,
   * until the returned function is called.
   */
  listen(listener: Listener, reload: () => void): () => void {
    this.#listeners.set(listener, reload);
    return () => this.#listeners.delete(listener);
  }

  /**
   * Calls `load` soon after changes that `matters` accepts, and when changes can have been missed,
   * until the returned function is called. Changes that never rest neither delay a load nor start
   * one while another runs, because only the newest one is shown.
   */
  follow(matters: (changes: Change[]) => boolean, load: () => Promise<void>, pause = REFRESH_MS): () => void {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isWanted = false;
    const run = async () => {
      isWanted = false;
      await load();
      timer = undefined;
      if (isWanted) begin();
    };
    const begin = () => void (timer ??= setTimeout(run, pause));
    const stop = this.listen((changes) => {
      if (!matters(changes)) return;
      isWanted = true;
      begin();
    }, load);
    return () => {
      stop();
      clearTimeout(timer);
      isWanted = false;
    };
  }

  /** Without a shared worker, this tab has a stream of its own. */
  #alone(token: string): void {
    this.#isAlone = true;
    this.#source?.close();
    this.#source = new Source(server, token, (message) => this.#receive(message));
  }

  #close(): void {
    this.#source?.close();
    this.#source = undefined;
    if (this.#worker !== undefined) this.#post({ type: "close" });
  }

  #post(request: Request): void {
    this.#worker?.port.postMessage(request);
  }

  #receive(message: Message): void {
    if (message.type === "changes") {
      const newest = message.changes.at(-1);
      if (newest !== undefined) this.lag = { ms: Math.max(0, Date.now() - Date.parse(newest.at)), at: Date.now() };
      for (const listener of this.#listeners.keys()) listener(message.changes);
      return;
    }
    const isNew = message.type === "missed" || (message.state === "live" && this.state !== "live");
    if (message.type === "state") {
      this.state = message.state;
      this.why = message.why;
    }
    if (isNew) for (const reload of this.#listeners.values()) reload();
  }
}

export const stream = new Stream();
