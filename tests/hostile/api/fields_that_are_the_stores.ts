/**
 * Fields of a record that only the store sets: its tenant, its author, its id.
 *
 * status: success
 * output: ["InvalidArguments", "InvalidArguments", "InvalidArguments"]
 * records: 0
 */
export async function execute(_input: unknown, context: any): Promise<string[]> {
  const ends: string[] = [];
  for (const more of [
    { owner_id: "00000000-0000-0000-0000-000000000001" },
    { created_by: "00000000-0000-0000-0000-000000000001" },
    { id: "00000000-0000-0000-0000-000000000001", version: 7 },
  ]) {
    const record = { title: "mine", tags: ["{{tool}}"], context: {}, ...more };
    ends.push(await context.api.createBreadcrumb(record).then(() => "written", (error: Error) => error.name));
  }
  return ends;
}
