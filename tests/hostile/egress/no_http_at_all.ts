/**
 * Servers that do not speak HTTP, close the connection, switch to another protocol, or respond with
 * an invalid status.
 *
 * status: success
 * output: ["TypeError"]
 * permissions: {"net": ["liar.test:{{liar}}"]}
 * arrived: {"path": "/no-http/{{tool}}", "holds": ["GET "]}
 * arrived: {"path": "/old/{{tool}}", "holds": ["GET "]}
 * arrived: {"path": "/close/{{tool}}", "holds": ["GET "]}
 * arrived: {"path": "/bad-status/{{tool}}", "holds": ["GET "]}
 * arrived: {"path": "/switch/{{tool}}", "holds": ["GET "]}
 * arrived: {"path": "/nul/{{tool}}", "holds": ["GET "]}
 */
export async function execute(): Promise<string[]> {
  const ends = new Set<string>();
  for (const lie of ["no-http", "old", "close", "bad-status", "switch", "nul"]) {
    const url = `http://liar.test:{{liar}}/${lie}/{{tool}}`;
    ends.add(await fetch(url).then((answer) => answer.text()).then((text) => `${lie}: ${text}`, (error) => error.name));
  }
  return [...ends];
}
