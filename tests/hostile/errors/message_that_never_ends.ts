/**
 * The message of the thrown value is a getter that loops, which runs when the error is recorded.
 *
 * status: error
 * error_code: Timeout
 * details: {"limit": "timeout_ms", "allowed": 400}
 * limits: {"timeout_ms": 400}
 */
export async function execute(): Promise<void> {
  throw {
    get message() {
      for (;;);
    },
  };
}
