/**
 * A tool that is cancelled and does not care. Its caller's word must end it, and not only its deadline a minute later.
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
