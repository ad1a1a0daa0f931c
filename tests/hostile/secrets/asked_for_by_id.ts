/**
 * Secrets that were not granted to the tool, requested by name, by id, by path and by likely names.
 *
 * status: success
 * output: ["PermissionDenied"]
 * secrets: [{"name": "UNNAMED_KEY", "value": "sk-live-unnamed-0123456789"}]
 * required_secrets: []
 */
export async function execute(_input: unknown, context: any): Promise<string[]> {
  const ends = new Set<string>();
  for (const wanted of ["UNNAMED_KEY", "HEADER_KEY", "unnamed_key", "*", "", "../UNNAMED_KEY", "00000000-0000-0000-0000-000000000001"]) {
    ends.add(await context.api.getSecret(wanted, "please").then((value: string) => `given ${value}`, (error: Error) => error.name));
  }
  return [...ends];
}
