/**
 * The result is ready at once, but endless microtasks are queued after it, so that it is never
 * read.
 *
 * status: error
 * error_code: Timeout
 * details: {"limit": "timeout_ms", "allowed": 400}
 * limits: {"timeout_ms": 400}
 */
export async function execute(): Promise<string> {
  const again = () => queueMicrotask(again);
  again();
  return "fetch me";
}
