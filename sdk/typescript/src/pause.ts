/** Pauses that can be aborted, and time limits. */
import { invalidArgument } from "./errors.js";

/** The longest that a timer of JavaScript can run. It ends a longer one at once. */
const LONGEST_MS = 2 ** 31 - 1;

/** Calls `ring` after `ms`, also if that is longer than a timer can run. Returns what stops it. */
export function alarm(ms: number, ring: () => void): () => void {
  let timer: ReturnType<typeof setTimeout>;
  const wait = (left: number) => {
    const first = Math.min(left, LONGEST_MS);
    timer = setTimeout(() => (left > first ? wait(left - first) : ring()), first);
  };
  wait(ms);
  return () => clearTimeout(timer);
}

export function checkedTime(name: string, ms: number): number {
  if (typeof ms !== "number" || !(ms > 0)) throw invalidArgument(`${name} must be milliseconds, more than 0; it is ${String(ms)}`);
  return ms;
}

/**
 * How long to wait before the next attempt (from 1): 0.1 s, then twice as long each time up to 5 s,
 * half of it by chance.
 */
export function backoff(attempt: number): number {
  const full = Math.min(5_000, 100 * 2 ** Math.min(attempt - 1, 10));
  return full * (0.5 + Math.random() / 2);
}

/** Resolves after `ms`; rejects with the signal's reason as soon as it is aborted. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", giveUp);
      resolve();
    }, ms);
    const giveUp = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    signal?.addEventListener("abort", giveUp, { once: true });
  });
}

/** A controller that is also aborted by the caller's signal. `release` disconnects them. */
export function linked(signal?: AbortSignal): { controller: AbortController; release: () => void } {
  const controller = new AbortController();
  const passOn = () => controller.abort(signal?.reason);
  if (signal?.aborted) passOn();
  signal?.addEventListener("abort", passOn, { once: true });
  return { controller, release: () => signal?.removeEventListener("abort", passOn) };
}
