import { session } from "./session.svelte";

/** The sending of a form: whether it is in progress, and why the last try failed. */
export class Submission {
  error = $state.raw<Error | undefined>(undefined);
  busy = $state(false);
  readonly #send: () => Promise<void>;

  constructor(send: () => Promise<void>) {
    this.#send = send;
  }

  /** For the form's `onsubmit`. */
  submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    this.busy = true;
    try {
      await this.#send();
    } catch (failed) {
      session.check(failed);
      this.error = failed as Error;
    } finally {
      this.busy = false;
    }
  };
}
