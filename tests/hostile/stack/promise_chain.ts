/**
 * A chain of half a million promises, each waiting for the next, settled at its far end.
 *
 * status: success
 * output: "settled"
 * limits: {"memory_mb": 512}
 */
export async function execute(): Promise<string> {
  let first!: (value: string) => void;
  let chain: Promise<string> = new Promise((resolve) => (first = resolve));
  for (let i = 0; i < 200_000; i++) {
    const inner = chain;
    chain = new Promise((resolve) => resolve(inner));
  }
  first("settled");
  return await chain;
}
