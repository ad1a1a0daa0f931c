/**
 * The end of an execution, caught and thrown away: a runtime that ends code by throwing into it never gets rid of this.
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
