import { session } from "./session.svelte";

/** A value from the server, with its error and whether it is being loaded. The last run counts. */
export class Loader<T> {
  value = $state.raw<T | undefined>(undefined);
  error = $state.raw<Error | undefined>(undefined);
  loading = $state(false);
  #run = 0;

  async run(load: () => Promise<T>): Promise<void> {
    const run = ++this.#run;
    this.loading = true;
    try {
      const value = await load();
      if (run !== this.#run) return;
      this.value = value;
      this.error = undefined;
    } catch (error) {
      session.check(error);
      if (run !== this.#run) return;
      this.error = error instanceof Error ? error : new Error(String(error));
    } finally {
      if (run === this.#run) this.loading = false;
    }
  }

  clear(): void {
    this.#run++;
    this.value = undefined;
    this.error = undefined;
    this.loading = false;
  }
}
