/**
 * A private host that the operator allowed for one tool, listed by another tool.
 *
 * status: refused
 * rule: net-host
 * permissions: {"net": ["friend.api.test:{{port}}"]}
 */
export async function execute(): Promise<number> {
  return (await fetch("http://friend.api.test:{{port}}/echo/{{tool}}")).status;
}
