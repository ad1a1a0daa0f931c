/**
 * An endless chain of microtasks: control returns to the engine all the time, but never to the
 * event loop, in which a cooperative deadline would run.
 *
 * status: error
 * error_code: Timeout
 * details: {"limit": "timeout_ms", "allowed": 400}
 * limits: {"timeout_ms": 400}
 */
export async function execute(): Promise<void> {
  for (;;) await null;
}
