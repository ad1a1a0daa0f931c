/**
 * Ten million arguments to one function, which are all on the stack.
 *
 * status: success
 * output: "RangeError"
 */
export async function execute(): Promise<string> {
  try {
    return String(Math.max(...new Array(10_000_000).fill(1)));
  } catch (error) {
    return (error as Error).name;
  }
}
