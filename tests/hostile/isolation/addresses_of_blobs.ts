/**
 * The URL of a blob from one call, passed on in a record and requested in the next call. It must
 * not exist there.
 *
 * status: success
 * calls: [
 *   {"input": {"make": true}, "output": "made"},
 *   {"input": {"make": false}, "output": "nothing"}]
 */
export async function execute(input: { make: boolean }, context: any): Promise<string> {
  if (input.make) {
    const address = URL.createObjectURL(new Blob(["mine"]));
    await context.api.createBreadcrumb({ title: "address", tags: ["{{tool}}"], context: { address } });
    return "made";
  }
  const [record] = await context.api.searchBreadcrumbs({ all_tags: ["{{tool}}"], include_context: true });
  const address: string = record.context.address;
  if (!address.startsWith("blob:")) return `no address: ${address}`;
  return await fetch(address).then(async (answer) => `found ${await answer.text()}`, () => "nothing");
}
