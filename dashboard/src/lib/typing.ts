import { onDestroy } from "svelte";

/** Collects what a person types into several fields, and hands it on after a short pause. */
export class Typing<T extends object> {
  #pending: Partial<T> = {};
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(readonly change: (changes: Partial<T>) => void) {
    // What was typed belongs to the screen that is left.
    onDestroy(() => clearTimeout(this.#timer));
  }

  set(changes: Partial<T>): void {
    Object.assign(this.#pending, changes);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      const pending = this.#pending;
      this.#pending = {};
      this.change(pending);
    }, 250);
  }
}
