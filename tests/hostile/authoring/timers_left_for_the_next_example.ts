/**
 * Examples that leave timers, promises and globals for the example after them, in a tool whose
 * calls may share globals.
 *
 * status: steps
 * tools: 1
 * isolation: tool
 * examples: {"@list": [{"description": "Alone", "input": {}, "output": 0}, 5]}
 * steps: [
 *   {"create": {}, "expect": {"status": "created", "draft": false}}
 *   ]
 */
export async function execute(): Promise<number> {
  const shared = globalThis as any;
  const before = shared.ticks ?? 0;
  shared.ticks = 1;
  setInterval(() => (shared.ticks += 1), 1);
  Promise.resolve().then(function again(): unknown {
    return new Promise((resolve) => setTimeout(resolve, 1)).then(again);
  });
  await new Promise((resolve) => setTimeout(resolve, 20));
  return before;
}
