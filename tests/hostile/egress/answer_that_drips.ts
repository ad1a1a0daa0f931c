/**
 * A response that sends one byte now and then, forever: no wait is long, and it never finishes.
 *
 * status: error
 * error_code: Timeout
 * details: {"limit": "timeout_ms", "allowed": 900}
 * permissions: {"net": ["api.test:{{port}}"]}
 * limits: {"timeout_ms": 900}
 */
export async function execute(): Promise<string> {
  return await (await fetch("http://api.test:{{port}}/drip/{{tool}}")).text();
}
