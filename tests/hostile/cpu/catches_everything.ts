/**
 * The termination of an execution is caught and ignored. A runtime that stops code by throwing into
 * it never stops this.
 *
 * status: error
 * error_code: Timeout
 * details: {"limit": "timeout_ms", "allowed": 400}
 * limits: {"timeout_ms": 400}
 */
export async function execute(): Promise<void> {
  for (;;) {
    try {
      for (;;) await Promise.reject(new Error("again"));
    } catch {
      continue;
    } finally {
      continue;
    }
  }
}
