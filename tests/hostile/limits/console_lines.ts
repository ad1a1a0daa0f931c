/**
 * A million lines on the console. The first are recorded, the rest is dropped, and the call
 * continues.
 *
 * status: success
 * output: "went on"
 * console: line 1
 * never: line 999999
 * limits: {"timeout_ms": 600000, "cpu_ms": 60000}
 */
export async function execute(): Promise<string> {
  for (let i = 1; i < 1_000_000; i++) console.log(`line ${i}`);
  return "went on";
}
