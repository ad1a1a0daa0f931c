/**
 * Examples whose clock and seed are at the ends of their ranges, and beyond.
 *
 * status: steps
 * tools: 1
 * examples: [{"description": "Late", "input": {}, "now": "9999-12-31T23:59:59.999Z", "seed": 4294967295, "output": "number"}, {"description": "Early", "input": {}, "now": "0001-01-01T00:00:00Z", "seed": 0, "output": "number"}]
 * steps: [
 *   {"create": {}, "expect": {"status": "created", "draft": false}},
 *   {"create": {"examples": [{"description": "Wrong", "input": {}, "seed": -1}]}, "request": {"mode": "update"}, "expect": {"status": "rejected"}, "says": ["examples"]},
 *   {"create": {"examples": [{"description": "Wrong", "input": {}, "seed": 4294967296}]}, "request": {"mode": "update"}, "expect": {"status": "rejected"}, "says": ["examples"]},
 *   {"create": {"examples": [{"description": "Wrong", "input": {}, "seed": 0.5}]}, "request": {"mode": "update"}, "expect": {"status": "rejected"}, "says": ["examples"]},
 *   {"create": {"examples": [{"description": "Wrong", "input": {}, "now": "yesterday"}]}, "request": {"mode": "update"}, "expect": {"status": "rejected"}, "says": ["examples"]},
 *   {"create": {"examples": [{"description": "Wrong", "input": {}, "now": 0}]}, "request": {"mode": "update"}, "expect": {"status": "rejected"}, "says": ["examples"]},
 *   {"create": {"examples": [{"description": "Wrong", "input": {}, "now": "2026-02-31T00:00:00Z"}]}, "request": {"mode": "update"}, "expect": {"status": "rejected"}, "says": ["examples"]}
 *   ]
 */
export async function execute(): Promise<string> {
  const end = Date.now() + 10;
  while (Date.now() < end);
  return typeof (Math.random() + Date.parse(new Date().toISOString()));
}
