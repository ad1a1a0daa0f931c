/**
 * A result that claims to be a promise: whoever waits for it runs the tool's code once more, after execute was over.
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
