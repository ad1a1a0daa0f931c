/**
 * A request with an endless body, from a stream that the tool feeds as long as it is read.
 *
 * status: error
 * error_code: ResourceExhausted
 * message: request body
 * permissions: {"net": ["api.test:{{port}}"]}
 * limits: {"timeout_ms": 600000, "cpu_ms": 60000}
 */
export async function execute(): Promise<unknown> {
  const piece = new Uint8Array(1 << 16);
  const body = new ReadableStream({ pull: (controller) => controller.enqueue(piece.slice()) });
  return (await fetch("http://api.test:{{port}}/echo/{{tool}}", { method: "POST", body, duplex: "half" } as any)).status;
}
