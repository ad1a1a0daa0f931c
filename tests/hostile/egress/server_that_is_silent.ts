/**
 * A server accepts the request and never responds, while the tool waits with all its slots for ops.
 *
 * status: error
 * error_code: Timeout
 * details: {"limit": "timeout_ms", "allowed": 900}
 * permissions: {"net": ["api.test:{{port}}"]}
 * limits: {"timeout_ms": 900}
 */
export async function execute(): Promise<unknown> {
  return await Promise.all(Array.from({ length: 60 }, () => fetch("http://api.test:{{port}}/silent/{{tool}}")));
}
