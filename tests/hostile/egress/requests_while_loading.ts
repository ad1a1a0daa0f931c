/**
 * A request at the top level of the module, which also runs during validation: without a call there
 * is no network. In the later call it gets its response, and the module fails there. If it had been
 * allowed during validation, there would be no call, and so no console line.
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
