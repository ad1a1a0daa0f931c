/**
 * An answer of some sixty kilobytes that unpacks to 64 MiB of zeros: the bound holds for what comes out.
 *
 * status: error
 * error_code: ResourceExhausted
 * message: response body
 * permissions: {"net": ["api.test:{{port}}"]}
 */
export async function execute(): Promise<number> {
  return (await (await fetch("http://api.test:{{port}}/bomb")).text()).length;
}
