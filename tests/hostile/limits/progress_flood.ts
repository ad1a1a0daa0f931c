/**
 * Progress without a pause, each text as long as allowed, from a call that never returns control to
 * the engine.
 *
 * status: error
 * error_code: Timeout
 * message: did not end within 1500 ms
 * limits: {"timeout_ms": 1500}
 */
export async function execute(_input: unknown, context: any): Promise<void> {
  for (let i = 0; ; i++) context.progress((i % 1000) / 1000, `${i} `.repeat(500));
}
