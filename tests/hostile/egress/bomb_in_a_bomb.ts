/**
 * A bomb that is compressed twice, so that even the first decompressed form is small. The gate does
 * not decompress it, and shows the encoding.
 *
 * status: success
 * output: {"status": 200, "encoding": "gzip, gzip", "small": true, "packed": true}
 * permissions: {"net": ["api.test:{{port}}"]}
 * arrived: {"path": "/bomb-in-bomb/{{tool}}", "holds": ["GET "]}
 */
export async function execute(): Promise<unknown> {
  const answer = await fetch("http://api.test:{{port}}/bomb-in-bomb/{{tool}}");
  const bytes = new Uint8Array(await answer.arrayBuffer());
  const packed = bytes[0] === 0x1f && bytes[1] === 0x8b;
  return { status: answer.status, encoding: answer.headers.get("content-encoding"), small: bytes.length < 100_000, packed };
}
