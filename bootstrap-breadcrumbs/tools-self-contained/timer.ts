// Waits, and returns how long it waited.

interface Input {
  seconds?: number;
  ms?: number;
}

interface Output {
  requested_ms: number;
  waited_ms: number;
}

export async function execute(input: Input): Promise<Output> {
  const requested = Math.round(input.ms ?? (input.seconds ?? 0) * 1000);
  const start = performance.now();
  await new Promise<void>((resolve) => setTimeout(resolve, requested));
  return { requested_ms: requested, waited_ms: Math.round(performance.now() - start) };
}
