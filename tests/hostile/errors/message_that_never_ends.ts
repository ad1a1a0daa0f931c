/**
 * The message of what is thrown is a getter that loops: whoever writes the error down runs it.
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
