/**
 * A structure with a depth of a hundred thousand objects, for the platform's own serializer and
 * printer.
 *
 * status: success
 * output: "no crash"
 * limits: {"memory_mb": 256, "cpu_ms": 30000}
 */
export async function execute(): Promise<string> {
  let nest: any = {};
  for (let i = 0; i < 100_000; i++) nest = { nest };
  for (const attack of [() => structuredClone(nest), () => console.log(nest), () => console.dir(nest, { depth: Infinity })]) {
    try {
      attack();
    } catch {
      continue;
    }
  }
  return "no crash";
}
