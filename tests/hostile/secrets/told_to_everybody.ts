/**
 * A tool that can read the value itself prints it, stores it in a record and throws it. Others must
 * not see it.
 *
 * status: error
 * error_code: ExecutionFailed
 * message: [secret READABLE_KEY]
 * console: [secret READABLE_KEY]
 * never: sk-live-readable-0123456789
 * records: 1
 * secrets: [{"name": "READABLE_KEY", "value": "sk-live-readable-0123456789", "hosts": ["api.test:{{port}}"], "readable": true}]
 */
export async function execute(_input: unknown, context: any): Promise<void> {
  const value: string = context.secrets.READABLE_KEY;
  if (!value.startsWith("sk-live")) throw new Error("it is not readable");
  console.log("the key is", value);
  await context.api.createBreadcrumb({ title: "notes", tags: ["{{tool}}"], context: { note: `the key is ${value}` } });
  throw new Error(`the key is ${value}`, { cause: new Error(value) });
}
