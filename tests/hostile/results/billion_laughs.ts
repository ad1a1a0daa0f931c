/**
 * Lists of lists that share their elements: forty of them in the tool's memory, a billion in JSON.
 *
 * status: error
 * error_code: ResourceExhausted
 * limits: {"timeout_ms": 600000, "cpu_ms": 2000}
 * details: {"allowed": 2000, "limit": "cpu_ms"}
 */
export async function execute(): Promise<unknown> {
  let laughs: unknown = ["ha"];
  for (let i = 0; i < 30; i++) laughs = [laughs, laughs];
  return laughs;
}
