/**
 * An endless response, as fast as it is read.
 *
 * status: error
 * error_code: ResourceExhausted
 * message: response body
 * permissions: {"net": ["api.test:{{port}}"]}
 */
export async function execute(): Promise<number> {
  return (await (await fetch("http://api.test:{{port}}/endless/{{tool}}")).text()).length;
}
