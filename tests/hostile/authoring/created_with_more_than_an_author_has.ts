/**
 * A new tool that asks for everything at once.
 *
 * status: steps
 * tools: 0
 * steps: [
 *   {"create": {"permissions": {"net": ["169.254.169.254"], "read": true, "write": ["/"], "run": true, "ffi": true, "hrtime": true}},
 *   "expect": {"status": "rejected", "validation": {"errors": [{"field": "permissions.read"}, {"field": "permissions.write"}, {"field": "permissions.run"}, {"field": "permissions.ffi"}, {"field": "permissions.hrtime"}, {"field": "permissions.net[0]"}]}}}
 *   ]
 */
export async function execute(): Promise<number> {
  return 1;
}
