/**
 * Names that are paths, empty, too long, not text, or have a NUL.
 *
 * status: steps
 * tools: 0
 * steps: [
 *   {"create": {"name": "../good"}, "expect": {"status": "rejected", "validation": {"errors": [{"field": "name"}]}}},
 *   {"create": {"name": "/etc/passwd"}, "expect": {"status": "rejected", "validation": {"errors": [{"field": "name"}]}}},
 *   {"create": {"name": "..\\good"}, "expect": {"status": "rejected", "validation": {"errors": [{"field": "name"}]}}},
 *   {"create": {"name": "tools/good"}, "expect": {"status": "rejected", "validation": {"errors": [{"field": "name"}]}}},
 *   {"create": {"name": "."}, "expect": {"status": "rejected", "validation": {"errors": [{"field": "name"}]}}},
 *   {"create": {"name": ""}, "expect": {"status": "rejected", "validation": {"errors": [{"field": "name"}]}}},
 *   {"create": {"name": {"@repeat": ["a", 101]}}, "expect": {"status": "rejected", "validation": {"errors": [{"field": "name"}]}}},
 *   {"create": {"name": ["good"]}, "expect": {"status": "rejected", "validation": {"errors": [{"field": "name"}]}}},
 *   {"create": {"name": null}, "expect": {"status": "rejected", "validation": {"errors": [{"field": "name"}]}}},
 *   {"create": {"name": {"name": "good"}}, "expect": {"status": "rejected", "validation": {"errors": [{"field": "name"}]}}},
 *   {"create": {"name": "good\u0000"}, "refused": "NUL"}
 *   ]
 */
export async function execute(): Promise<number> {
  return 1;
}
