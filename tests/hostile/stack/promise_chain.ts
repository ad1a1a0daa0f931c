/**
 * A promise that waits for a promise that waits for a promise, half a million deep, settled at its far end.
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
