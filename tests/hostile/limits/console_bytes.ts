/**
 * One line of fifty megabytes on the console.
 *
 * status: success
 * output: "went on"
 * never: mmmmmmmmmmmmmmmm
 * limits: {"timeout_ms": 600000, "cpu_ms": 60000, "memory_mb": 512}
 */
export async function execute(): Promise<string> {
  console.log("m".repeat(50_000_000));
  return "went on";
}
