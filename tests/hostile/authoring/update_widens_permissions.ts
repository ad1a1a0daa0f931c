/**
 * Updates that ask for more than any author has: files, programs, fine clocks, private and too
 * many hosts. The version before them goes on to serve.
 *
 * status: steps
 * tools: 1
 * steps: [
 *   {"create": {}, "expect": {"status": "created"}},
 *   {"create": {"permissions": {"read": true}}, "request": {"mode": "update"}, "expect": {"status": "rejected", "validation": {"errors": [{"rule": "forbidden-permission"}]}}},
 *   {"create": {"permissions": {"run": ["sh"]}}, "request": {"mode": "update"}, "expect": {"status": "rejected", "validation": {"errors": [{"rule": "forbidden-permission"}]}}},
 *   {"create": {"permissions": {"hrtime": true}}, "request": {"mode": "update"}, "expect": {"status": "rejected", "validation": {"errors": [{"rule": "forbidden-permission"}]}}},
 *   {"create": {"permissions": {"net": ["10.0.0.1"]}}, "request": {"mode": "update"}, "expect": {"status": "rejected", "validation": {"errors": [{"rule": "net-host"}]}}},
 *   {"create": {"permissions": {"net": ["localhost:80"]}}, "request": {"mode": "update"}, "expect": {"status": "rejected", "validation": {"errors": [{"rule": "net-host"}]}}},
 *   {"create": {"permissions": {"net": ["a.example.com", "b.example.com", "c.example.com", "d.example.com", "e.example.com", "f.example.com"]}}, "request": {"mode": "update"}, "expect": {"status": "rejected", "validation": {"errors": [{"rule": "net-too-many"}]}}},
 *   {"call": "update_tool", "input": {"name": "{{tool}}", "changes": {"permissions": {"write": true}}}, "expect": {"output": {"status": "rejected"}}},
 *   {"call": "{{tool}}", "expect": {"output": 1, "metadata": {"tool_version": 1}}}
 *   ]
 */
export async function execute(): Promise<number> {
  return 1;
}
