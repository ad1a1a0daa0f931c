/**
 * An import of the engine's file system, hidden in a function that is never called.
 *
 * status: refused
 * rule: no-dynamic-import
 */
export async function execute(): Promise<number> {
  const later = async () => (await import("node:fs")).readFileSync("/etc/passwd");
  return typeof later === "function" ? 1 : 0;
}
