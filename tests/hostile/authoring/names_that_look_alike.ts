/**
 * Names that look like those of other tools: with letters of other alphabets, with invisible
 * characters, with spaces.
 *
 * status: steps
 * tools: 0
 * steps: [
 *   {"create": {"name": "\u0441reate_tool"}, "expect": {"status": "rejected", "validation": {"errors": [{"rule": "field", "field": "name"}]}}},
 *   {"create": {"name": "g\u043e\u043ed"}, "expect": {"status": "rejected", "validation": {"errors": [{"rule": "field", "field": "name"}]}}},
 *   {"create": {"name": "good\u200b"}, "expect": {"status": "rejected", "validation": {"errors": [{"rule": "field", "field": "name"}]}}},
 *   {"create": {"name": "\u202egood"}, "expect": {"status": "rejected", "validation": {"errors": [{"rule": "field", "field": "name"}]}}},
 *   {"create": {"name": "\uff47ood"}, "expect": {"status": "rejected", "validation": {"errors": [{"rule": "field", "field": "name"}]}}},
 *   {"create": {"name": " good"}, "expect": {"status": "rejected", "validation": {"errors": [{"rule": "field", "field": "name"}]}}},
 *   {"create": {"name": "good "}, "expect": {"status": "rejected", "validation": {"errors": [{"rule": "field", "field": "name"}]}}},
 *   {"create": {"name": "go\nod"}, "expect": {"status": "rejected", "validation": {"errors": [{"rule": "field", "field": "name"}]}}}
 *   ]
 */
export async function execute(): Promise<number> {
  return 1;
}
