/**
 * A DNS server that never answers. The call fails by its own deadline, and the gate serves others
 * meanwhile.
 *
 * status: error
 * error_code: Timeout
 * details: {"limit": "timeout_ms", "allowed": 700}
 * permissions: {"net": ["a.silent.example.com"]}
 * limits: {"timeout_ms": 700}
 */
export async function execute(): Promise<number> {
  return (await fetch("http://a.silent.example.com/")).status;
}
