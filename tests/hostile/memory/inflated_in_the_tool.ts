/**
 * A bomb that the tool itself decompresses with the platform's own streams: 256 MiB of zeros from a
 * quarter of a MiB.
 *
 * status: error
 * error_code: ResourceExhausted
 * details: {"limit": "memory_mb", "allowed": 64}
 * limits: {"timeout_ms": 600000, "memory_mb": 64, "cpu_ms": 60000}
 */
export async function execute(): Promise<number> {
  const zeros = new ReadableStream({
    start(controller) {
      const piece = new Uint8Array(1 << 20);
      let left = 256;
      return (async () => {
        while (left-- > 0) {
          controller.enqueue(piece.slice());
          while (controller.desiredSize !== null && controller.desiredSize < 1) await new Promise((r) => setTimeout(r, 0));
        }
        controller.close();
      })();
    },
  }, { highWaterMark: 2 });
  const packed = zeros.pipeThrough(new CompressionStream("gzip"));
  return (await new Response(packed.pipeThrough(new DecompressionStream("gzip"))).arrayBuffer()).byteLength;
}
