/**
 * Work that begins in one call and would continue in the next one of the same process: callbacks of
 * the garbage collector, observers, listeners of an object that calls share, compilation, imports
 * that fail later, messages. All of them would hand over what the first call knew.
 *
 * status: success
 * calls: [
 *   {"input": {"leave": true}, "output": "left"},
 *   {"input": {"leave": true}, "output": "left"},
 *   {"input": {"leave": false}, "output": "quiet"},
 *   {"input": {"leave": true}, "output": "left"},
 *   {"input": {"leave": false}, "output": "quiet"},
 *   {"input": {"leave": false}, "output": "quiet"}]
 * never: handed over
 */
export async function execute(input: { leave: boolean }): Promise<string> {
  const scope: any = globalThis;
  if (!input.leave) {
    performance.dispatchEvent(new Event("look"));
    performance.mark("look");
    for (let i = 0; i < 50; i++) new Array(100_000).fill(i);
    await new Promise((resolve) => setTimeout(resolve, 300));
    return scope.heard ?? "quiet";
  }
  const hear = () => {
    scope.heard = ["handed", "over"].join(" ");
    console.log(scope.heard);
  };
  const registry = new FinalizationRegistry(hear);
  for (let i = 0; i < 100; i++) registry.register({}, i);
  performance.addEventListener("look", hear);
  new PerformanceObserver(hear).observe({ entryTypes: ["mark"] });
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = () => setTimeout(hear, 100);
  port2.postMessage(1);
  void WebAssembly.compile(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0])).then(() => setTimeout(hear, 100));
  return "left";
}
