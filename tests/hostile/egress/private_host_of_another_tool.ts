/**
 * A private host that the operator allowed to one tool, listed by another.
 *
 * status: refused
 * rule: net-host
 * permissions: {"net": ["friend.api.test:{{port}}"]}
 */
export async function execute(): Promise<number> {
  return (await fetch("http://friend.api.test:{{port}}/echo/{{tool}}")).status;
}
