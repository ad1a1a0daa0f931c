/**
 * A result that pretends to be a promise: awaiting it runs the tool's code again after execute has
 * finished.
 *
 * status: error
 * error_code: Timeout
 * details: {"limit": "timeout_ms", "allowed": 400}
 * limits: {"timeout_ms": 400}
 */
export async function execute(): Promise<unknown> {
  return {
    then() {
      for (;;);
    },
  };
}
