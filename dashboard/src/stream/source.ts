/** Follows the event stream of one token, and hands its changes on in batches. */
import { Rcrt, RcrtError } from "@rcrt/client";
import { change, type Change } from "./change";

export type Connection = "connecting" | "live" | "lost" | "refused";

export type Message =
  | { type: "state"; state: Connection; why: string }
  | { type: "changes"; changes: Change[] }
  /** Some events are no longer stored. The screens must load again. */
  | { type: "missed" };

/** How long changes are collected, so that 1,000 events a second are ten messages. */
const BATCH_MS = 100;
const RETRY_MS = 3000;

export class Source {
  #controller = new AbortController();
  #batch: Change[] = [];
  #state: { state: Connection; why: string } = { state: "connecting", why: "" };

  constructor(
    url: string,
    token: string,
    readonly send: (message: Message) => void,
  ) {
    const fetching: typeof fetch = async (input, init) => {
      const answer = await fetch(input, init);
      // The client reconnects by itself; only here it is seen that it succeeded.
      if (answer.ok && String(input).includes("/events/stream")) this.#become("live");
      return answer;
    };
    void this.#follow(new Rcrt({ url, token, fetch: fetching }));
  }

  get state(): Message {
    return { type: "state", ...this.#state };
  }

  close(): void {
    this.#controller.abort();
  }

  async #follow(client: Rcrt): Promise<void> {
    const signal = this.#controller.signal;
    let after: string | number | undefined;
    while (!signal.aborted) {
      try {
        // Without a number, events between a failed start and the next one would be missed.
        after ??= await client.latestEvent({ signal });
        const onReconnect = (why: Error) => this.#become("lost", why.message);
        for await (const item of client.events({ after, all: true, signal, onReconnect })) {
          after = item.id;
          if (item.type === "missed") this.send({ type: "missed" });
          else this.#add(change(item));
        }
      } catch (error) {
        if (signal.aborted) return;
        const why = error instanceof Error ? error.message : String(error);
        const temporary = !(error instanceof RcrtError) || error.retryable || error.code === "foreign";
        this.#become(temporary ? "lost" : "refused", why);
        if (!temporary) return;
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
      }
    }
  }

  #become(state: Connection, why = ""): void {
    this.#state = { state, why };
    this.send(this.state);
  }

  #add(item: Change): void {
    if (this.#batch.push(item) > 1) return;
    setTimeout(() => {
      this.send({ type: "changes", changes: this.#batch });
      this.#batch = [];
    }, BATCH_MS);
  }
}
