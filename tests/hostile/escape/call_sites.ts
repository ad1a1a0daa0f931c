/**
 * The engine's structured stack traces: a frame exposes its function and receiver, and so could
 * lead from the tool's code into the runtime's own.
 *
 * status: success
 * output: []
 */
export async function execute(): Promise<unknown[]> {
  const found: unknown[] = [];
  (Error as any).prepareStackTrace = (_error: unknown, frames: any[]) => {
    for (const frame of frames) {
      for (const ask of ["getThis", "getFunction"]) {
        const value = frame[ask]?.();
        const text = typeof value === "function" ? `${value}` : "";
        if (/op_|primordials|core\./.test(text)) found.push(text.slice(0, 100));
        if (value !== null && typeof value === "object" && value !== globalThis) found.push(Object.keys(value).join());
      }
    }
    return "";
  };
  const look = () => void new Error("look").stack;
  look();
  [1].map(look);
  await new Promise<void>((resolve) => setTimeout(() => resolve(look()), 1));
  const reader = new ReadableStream({ pull: (controller) => (look(), controller.close()) }).getReader();
  await reader.read();
  JSON.stringify({ toJSON: look });
  structuredClone({ get x() { return look(); } });
  new EventTarget().addEventListener("x", look);
  console.log({ [Symbol.for("Deno.customInspect")]: look, get y() { return look(); } });
  await fetch({ toString: () => (look(), "http://nowhere.example.com/") } as any).catch(look);
  return found;
}
