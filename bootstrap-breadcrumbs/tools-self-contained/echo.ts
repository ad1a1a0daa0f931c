// Gives back what it was given: the smallest tool, for trying a setup out.

interface Input {
  message: unknown;
}

export async function execute(input: Input): Promise<{ echo: unknown }> {
  return { echo: input.message };
}
