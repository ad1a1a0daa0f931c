/**
 * A tool ignores its cancellation. The cancellation must stop it, not only its deadline a minute
 * later.
 *
 * status: error
 * error_code: Cancelled
 * message: cancelled
 * cancel_at: /echo/{{tool}}
 * limits: {"timeout_ms": 90000, "cpu_ms": 90000}
 * permissions: {"net": ["api.test:{{port}}"]}
 */
export async function execute(): Promise<void> {
  await fetch("http://api.test:{{port}}/echo/{{tool}}");
  for (;;);
}
