/**
 * The result is there at once, and microtasks without an end are queued behind it, so that it is never fetched.
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
