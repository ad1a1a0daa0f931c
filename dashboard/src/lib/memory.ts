/** Entries of working memory. */
import { session } from "./session.svelte";

/** By its absolute key. Who reads records needs no call for it. */
export async function readEntry(key: string): Promise<unknown> {
  const { client, can } = session;
  if (!can.readRecords) return await client.call("get_from_working_memory", { key }, { maxResultChars: 4_000_000 });
  const at = key.lastIndexOf("/");
  const is = (path: string, value: string) => ({ path, op: "eq" as const, value });
  const contextMatch = [is("$.namespace", key.slice(0, at)), is("$.key", key.slice(at + 1))];
  const [entry] = await client.listBreadcrumbs({ schemaName: "memory.entry.v1", contextMatch, includeContext: true, limit: 1 });
  if (entry?.context === undefined) throw new Error("This part is no longer in working memory. Call the tool again.");
  return entry.context["value"];
}
