/**
 * A thousand requests at once to a server that never responds. Each would hold a slot in the
 * runner.
 *
 * status: error
 * error_code: ResourceExhausted
 * details: {"limit": "ops_in_flight", "allowed": 64}
 * permissions: {"net": ["api.test:{{port}}"]}
 */
export async function execute(): Promise<unknown> {
  const waiting = Array.from({ length: 1_000 }, () => fetch("http://api.test:{{port}}/silent/{{tool}}"));
  return await Promise.all(waiting);
}
