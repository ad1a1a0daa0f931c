/**
 * A request at the top of the module, which also runs when the tool is only looked at: no call, no network. In the call
 * that comes afterwards it is answered, and the module fails there: had it been answered before, there would be no call,
 * and so no line on the console.
 *
 * status: error
 * error_code: ExecutionFailed
 * message: answered in a call
 * console: the call looked at the answer
 * permissions: {"net": ["api.test:{{port}}"]}
 * arrived: {"path": "/echo/{{tool}}/loading", "holds": ["GET "]}
 */
const early = await fetch("http://api.test:{{port}}/echo/{{tool}}/loading").then(() => "answered", (error) => error.name as string);
if (early === "answered") {
  console.log("the call looked at the answer");
  throw new Error("answered in a call");
}

export async function execute(): Promise<string> {
  return early;
}
