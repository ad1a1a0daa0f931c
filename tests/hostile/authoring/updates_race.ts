/**
 * Two updates of the same version at the same moment. The second must not overwrite the first.
 *
 * status: steps
 * tools: 1
 * outcomes: {"created": 1, "updated": 1, "rejected": 1}
 * steps: [
 *   {"create": {}},
 *   {"create": {"version": "1.1.0"}, "request": {"mode": "update", "if_version": 1}, "with_next": true},
 *   {"create": {"version": "1.2.0"}, "request": {"mode": "update", "if_version": 1}}
 *   ]
 */
export async function execute(): Promise<number> {
  return 1;
}
