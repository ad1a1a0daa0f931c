/**
 * Buffers that are detached or shortened while native code uses them, on the same or on another
 * thread.
 *
 * status: success
 * output: "alive"
 */
export async function execute(): Promise<string> {
  const fresh = (): any => new (ArrayBuffer as any)(1 << 20, { maxByteLength: 1 << 21 });
  const gone = (buffer: any) => {
    try {
      buffer.resize(0);
    } catch {
      structuredClone(buffer, { transfer: [buffer] });
    }
  };
  const key = await crypto.subtle.generateKey({ name: "AES-CBC", length: 256 }, false, ["encrypt"]);
  const waiting: Promise<unknown>[] = [];
  for (let i = 0; i < 20; i++) {
    const [a, b, c, d] = [fresh(), fresh(), fresh(), fresh()];
    waiting.push(crypto.subtle.digest("SHA-512", a));
    gone(a);
    waiting.push(crypto.subtle.encrypt({
      name: "AES-CBC",
      get iv() {
        gone(b);
        return new Uint8Array(16);
      },
    } as any, key as CryptoKey, new Uint8Array(b)));
    const view = new Uint8Array(c);
    waiting.push(new Response(view).arrayBuffer());
    gone(c);
    try {
      new TextEncoder().encodeInto("x".repeat(1 << 19), new Uint8Array(d));
      gone(d);
      crypto.getRandomValues(new Uint8Array(d));
      new TextDecoder().decode(new Uint8Array(d, 0));
    } catch {
      continue;
    }
  }
  await Promise.allSettled(waiting);
  return "alive";
}
