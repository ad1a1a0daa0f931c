/**
 * The same bound, with sixty writes at a time, and every refusal is caught. Not one record more.
 *
 * status: success
 * output: {"written": 100}
 * records: 100
 */
export async function execute(_input: unknown, context: any): Promise<unknown> {
  let written = 0;
  for (let round = 0; round < 5; round++) {
    const tries = Array.from({ length: 60 }, (_, i) =>
      context.api.createBreadcrumb({ title: `n ${i}`, tags: ["{{tool}}"], context: {} }));
    written += (await Promise.allSettled(tries)).filter((end) => end.status === "fulfilled").length;
  }
  return { written };
}
