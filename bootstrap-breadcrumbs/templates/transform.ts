// {{description}}

interface Input {
  text: string;
}

interface Output {
  words: number;
  slug: string;
}

export async function execute(input: Input): Promise<Output> {
  const words = input.text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
  return { words: words.length, slug: words.join("-") };
}
