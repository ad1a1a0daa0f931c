/**
 * An endless response head: endlessly many headers, one endless header, endless "100 Continue"
 * responses.
 *
 * status: success
 * output: ["TypeError"]
 * permissions: {"net": ["liar.test:{{liar}}"]}
 * arrived: {"path": "/endless-head/{{tool}}", "holds": ["GET "]}
 * arrived: {"path": "/endless-line/{{tool}}", "holds": ["GET "]}
 * arrived: {"path": "/continue/{{tool}}", "holds": ["GET "]}
 * limits: {"timeout_ms": 600000}
 */
export async function execute(): Promise<string[]> {
  const ends = new Set<string>();
  for (const lie of ["endless-head", "endless-line", "continue"]) {
    const end = await fetch(`http://liar.test:{{liar}}/${lie}/{{tool}}`).then((answer) => `${lie} ${answer.status}`, (error) => error.name);
    ends.add(end);
  }
  return [...ends];
}
