/** Pauses that can be aborted. */

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
