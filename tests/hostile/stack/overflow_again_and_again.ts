/**
 * The stack overflows again at each level where it overflowed before: a tree of 2^thousands of
 * overflows.
 *
 * status: error
 * error_code: Timeout
 * details: {"limit": "timeout_ms", "allowed": 500}
 * limits: {"timeout_ms": 500}
 */
export async function execute(): Promise<void> {
  const dive = (): void => {
    try {
      dive();
    } catch {
      dive();
    } finally {
      dive();
    }
  };
  dive();
}
