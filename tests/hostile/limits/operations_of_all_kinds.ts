/**
 * Requests that never get a response use all slots for ops. A search beside them is refused, and
 * succeeds as soon as the requests were aborted.
 *
 * status: success
 * output: {"beside": "ResourceExhausted", "later": "done"}
 * permissions: {"net": ["api.test:{{port}}"]}
 */
export async function execute(_input: unknown, context: any): Promise<unknown> {
  const search = () => context.api.searchBreadcrumbs({ limit: 1 }).then(() => "done", (error: Error) => error.name);
  const giving_up = new AbortController();
  const waiting = Array.from({ length: 64 }, () =>
    fetch("http://api.test:{{port}}/silent/{{tool}}", { signal: giving_up.signal }).catch(() => {}));
  const beside = await search();
  giving_up.abort();
  await Promise.all(waiting);
  return { beside, later: await search() };
}
