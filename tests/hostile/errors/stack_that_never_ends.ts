/**
 * The engine's hook for stack traces loops, or takes its time again for every frame that is asked for.
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
