/**
 * Code that exhausts the parser: nested brackets, a single line of megabytes, and no end.
 *
 * status: steps
 * tools: 0
 * steps: [
 *   {"create": {"code": {"language": "typescript", "source": {"@repeat": ["(", 100000]}}}, "expect": {"status": "rejected", "validation": {"errors": [{"rule": "syntax"}]}}},
 *   {"create": {"code": {"language": "typescript", "source": {"@repeat": ["type A<B extends C ? D : ", 20000]}}}, "expect": {"status": "rejected", "validation": {"errors": [{"rule": "syntax"}]}}},
 *   {"create": {"code": {"language": "javascript", "source": {"@repeat": ["/* a comment */ ", 200000]}}}, "expect": {"status": "rejected"}},
 *   {"create": {"code": {"language": "javascript", "source": {"@repeat": ["export async function execute() { return `${", 5000]}}}, "expect": {"status": "rejected"}}
 *   ]
 */
export async function execute(): Promise<number> {
  return 1;
}
