/**
 * Endless recursion, caught by the tool: an ordinary error, after which the same code continues.
 *
 * status: success
 * output: "RangeError"
 */
export async function execute(): Promise<string> {
  const dive = (): number => dive() + 1;
  try {
    dive();
  } catch (error) {
    return (error as Error).name;
  }
  return "no end";
}
