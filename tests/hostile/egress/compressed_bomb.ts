/**
 * A response of some sixty kilobytes that decompresses to 64 MiB of zeros. The bound applies to the
 * decompressed size.
 *
 * status: error
 * error_code: ResourceExhausted
 * message: response body
 * permissions: {"net": ["api.test:{{port}}"]}
 */
export async function execute(): Promise<number> {
  return (await (await fetch("http://api.test:{{port}}/bomb")).text()).length;
}
