/**
 * Twenty thousand promises are rejected and not awaited. Each is reported, and all together stay
 * within the bounds of the console.
 *
 * status: success
 * output: "done"
 * console: lost 1
 * never: lost 19999
 * limits: {"cpu_ms": 20000}
 */
export async function execute(): Promise<string> {
  for (let i = 0; i < 20_000; i++) {
    void Promise.reject(new Error(`lost ${i}`));
    if (i % 1_000 === 0) await new Promise((resolve) => setTimeout(resolve, 0));
  }
  await new Promise((resolve) => setTimeout(resolve, 10));
  return "done";
}
