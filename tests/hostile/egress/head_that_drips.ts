/**
 * A response head that sends one line now and then, forever. The gate gives up by itself, before
 * the tool's own deadline.
 *
 * status: error
 * error_code: ExecutionFailed
 * message: no response within 30 s
 * permissions: {"net": ["liar.test:{{liar}}"]}
 * arrived: {"path": "/slow-head/{{tool}}", "holds": ["GET "]}
 * limits: {"timeout_ms": 600000}
 */
export async function execute(): Promise<number> {
  return (await fetch("http://liar.test:{{liar}}/slow-head/{{tool}}")).status;
}
