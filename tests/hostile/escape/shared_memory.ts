/**
 * Memory that is shared between threads makes a clock of any precision: by its name, and through
 * WebAssembly, which has its own.
 *
 * status: success
 * output: {"names": [], "shared": []}
 */
export async function execute(): Promise<unknown> {
  const names = ["SharedArrayBuffer", "Atomics", "Worker", "SharedWorker"].filter((name) => name in globalThis);
  const shared: string[] = [];
  const look = (what: string, make: () => any) => {
    try {
      const value = make();
      const kind = Object.prototype.toString.call(value);
      if (/Shared/.test(kind) || /Shared/.test(value.constructor.name)) shared.push(what);
    } catch {
      return;
    }
  };
  const wasm: any = (globalThis as any).WebAssembly;
  look("memory", () => new wasm.Memory({ initial: 1, maximum: 1, shared: true }).buffer);
  // (module (memory (export "m") 1 1 shared))
  const bytes = new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0, 5, 4, 1, 3, 1, 1, 7, 5, 1, 1, 109, 2, 0]);
  look("module", () => new wasm.Instance(new wasm.Module(bytes)).exports.m.buffer);
  look("clone", () => structuredClone(new wasm.Memory({ initial: 1, maximum: 1, shared: true })).buffer);
  return { names, shared };
}
