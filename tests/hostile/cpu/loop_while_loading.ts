/**
 * A loop outside of execute: it runs while the tool is validated, before any call has a deadline.
 *
 * status: error
 * error_code: ExecutionFailed
 * message: did not end within
 * limits: {"timeout_ms": 400}
 */
for (;;);

export async function execute(): Promise<number> {
  return 1;
}
