/**
 * Timers that get text instead of a function, which browsers run as code.
 *
 * status: success
 * output: {"thrown": true, "ran": false}
 */
export async function execute(): Promise<unknown> {
  const set = (globalThis as any)[["set", "Timeout"].join("")];
  let thrown = false;
  try {
    set("globalThis.ran = true".toString(), 0);
  } catch {
    thrown = true;
  }
  await new Promise((resolve) => setTimeout(resolve, 30));
  return { thrown, ran: "ran" in globalThis };
}
