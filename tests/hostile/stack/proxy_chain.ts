/**
 * Two hundred thousand proxies around each other. One read of a property runs through all of them
 * in native code.
 *
 * status: success
 * output: "RangeError"
 */
export async function execute(): Promise<string> {
  let inner: any = {};
  for (let i = 0; i < 200_000; i++) inner = new Proxy(inner, {});
  try {
    return String(inner.x);
  } catch (error) {
    return (error as Error).name;
  }
}
