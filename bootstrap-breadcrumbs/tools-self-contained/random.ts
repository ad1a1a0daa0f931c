// Cryptographically secure random values without bias.

type Kind = "number" | "integer" | "uuid" | "choice";

interface Input {
  kind?: Kind;
  min?: number;
  max?: number;
  choices?: unknown[];
  count?: number;
}

interface Output {
  value: unknown;
  values: unknown[];
}

/** 53 random bits: an integer from 0 to 2^53 - 1, uniformly distributed. */
function bits53(): number {
  const [high, low] = crypto.getRandomValues(new Uint32Array(2));
  return (high & 0x1fffff) * 2 ** 32 + low;
}

/** An integer from 0 to `size` - 1. Rejection sampling: the incomplete last range would favour small numbers. */
function below(size: number): number {
  const limit = 2 ** 53 - (2 ** 53 % size);
  for (;;) {
    const drawn = bits53();
    if (drawn < limit) {
      return drawn % size;
    }
  }
}

function drawNumber(min: number, max: number): number {
  return min + (bits53() / 2 ** 53) * (max - min);
}

function drawInteger(min: number, max: number): number {
  const low = Math.ceil(min);
  const high = Math.floor(max);
  if (low > high) {
    throw new Error(`There is no integer from ${min} to ${max}`);
  }
  if (!Number.isSafeInteger(high - low + 1)) {
    throw new Error("min and max are too far apart: the range can have at most 2^53 integers");
  }
  return low + below(high - low + 1);
}

export async function execute(input: Input): Promise<Output> {
  const { kind = "number", count = 1, choices = [] } = input;
  const { min = 0, max = kind === "integer" ? 100 : 1 } = input;
  if (min > max) {
    throw new Error(`min (${min}) is greater than max (${max})`);
  }
  const draw = (): unknown => {
    switch (kind) {
      case "integer":
        return drawInteger(min, max);
      case "uuid":
        return crypto.randomUUID();
      case "choice":
        return choices[below(choices.length)];
      default:
        return drawNumber(min, max);
    }
  };
  const values = Array.from({ length: count }, draw);
  return { value: values[0], values };
}
