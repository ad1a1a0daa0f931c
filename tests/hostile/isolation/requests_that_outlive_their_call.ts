/**
 * A body from a server that never stops sending is started in one call and read in the next, in
 * globals that persist. The ops of a call stop with it.
 *
 * status: success
 * isolation: tool
 * permissions: {"net": ["api.test:{{port}}"]}
 * arrived: {"path": "/drip/{{tool}}", "holds": ["GET "]}
 * calls: [
 *   {"input": {"first": true}, "output": "begun"},
 *   {"input": {"first": false}, "output": "ended"}]
 */
let kept: ReadableStreamDefaultReader<Uint8Array> | undefined;

export async function execute(input: { first: boolean }): Promise<string> {
  if (input.first) {
    kept = (await fetch("http://api.test:{{port}}/drip/{{tool}}")).body!.getReader();
    return (await kept.read()).value?.length ? "begun" : "nothing came";
  }
  // A fresh isolate has no reader, which is fine too.
  if (kept === undefined) return "ended";
  // Data from before the first call finished can still be buffered. Data that comes ten times a
  // second would continue.
  const late = new Promise<"late">((resolve) => setTimeout(() => resolve("late"), 3_000));
  for (let pieces = 0; pieces < 10; pieces++) {
    const step = await Promise.race([kept.read().catch(() => ({ done: true })), late]);
    if (step === "late" || step.done) return "ended";
  }
  return "ten pieces came";
}
