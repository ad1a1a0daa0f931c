/**
 * A loop without an end, in the plainest way: nothing in it gives the runtime a turn.
 *
 * status: error
 * error_code: Timeout
 * details: {"limit": "timeout_ms", "allowed": 400}
 * limits: {"timeout_ms": 400}
 */
export async function execute(): Promise<void> {
  for (;;);
}
