/**
 * Words about its progress without a pause, each as long as it may be, from a call that never lets go of the engine.
 *
 * status: error
 * error_code: Timeout
 * message: did not end within 1500 ms
 * limits: {"timeout_ms": 1500}
 */
export async function execute(_input: unknown, context: any): Promise<void> {
  for (let i = 0; ; i++) context.progress((i % 1000) / 1000, `${i} `.repeat(500));
}
