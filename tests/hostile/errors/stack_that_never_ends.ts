/**
 * The engine's hook for stack traces loops, or is slow for every frame.
 *
 * status: error
 * error_code: Timeout
 * details: {"limit": "timeout_ms", "allowed": 400}
 * limits: {"timeout_ms": 400}
 */
export async function execute(): Promise<void> {
  (Error as any).prepareStackTrace = () => {
    for (;;);
  };
  throw new Error("with a stack");
}
