/**
 * The thrown value has no message, so it is printed. It has its own ways to be printed, each of
 * which loops.
 *
 * status: error
 * error_code: ExecutionFailed
 * details: {"name": "object"}
 * limits: {"timeout_ms": 20000, "cpu_ms": 5000}
 */
export async function execute(): Promise<void> {
  const loop = () => {
    for (;;);
  };
  const hooks: any = {};
  for (const name of ["Deno.customInspect", "Deno.privateCustomInspect", "nodejs.util.inspect.custom"]) {
    hooks[Symbol.for(name)] = loop;
  }
  throw new Proxy(hooks, { ownKeys: loop, getOwnPropertyDescriptor: loop, has: loop });
}
