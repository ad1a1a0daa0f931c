/**
 * A loop in finally, which runs after the loop before it was terminated. A runtime that terminates
 * an execution only once stays busy forever.
 *
 * status: error
 * error_code: Timeout
 * details: {"limit": "timeout_ms", "allowed": 400}
 * limits: {"timeout_ms": 400}
 */
export async function execute(): Promise<void> {
  const stay = (depth: number): void => {
    try {
      for (;;);
    } finally {
      for (;;) if (depth > 0) stay(depth - 1);
    }
  };
  stay(50);
}
