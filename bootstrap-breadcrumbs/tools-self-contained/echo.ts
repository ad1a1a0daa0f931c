// Returns its input: the smallest tool, for testing a setup.

interface Input {
  message: unknown;
}

export async function execute(input: Input): Promise<{ echo: unknown }> {
  return { echo: input.message };
}
