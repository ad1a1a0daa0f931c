/** Large results, part by part. */
import { invalidArgument, RcrtError, ToolError } from "./errors.js";
import { invoke, type InvokeOptions } from "./invoke.js";
import type { LargeResult, ToolResponse } from "./shapes.js";
import type { Transport } from "./transport.js";

/** The most characters that a call can return at once, so that each part is returned whole. */
const MOST_CHARS = 4_000_000;
const READER = "get_from_working_memory";

/**
 * Whether an output has the form of the index of a result that was too large to return at once.
 * {@link largeResult} also checks the response.
 */
export function isLargeResult(output: unknown): output is LargeResult {
  const { type, text, parts } = (typeof output === "object" ? (output as Partial<LargeResult> | null) : null) ?? {};
  return type === "large_result" && typeof text === "string" && typeof parts === "number";
}

/**
 * The index in a response of `invoke` whose result was too large. The response's metadata says so,
 * which a tool cannot write, while its output can look like an index.
 */
export function largeResult({ metadata, output }: ToolResponse): LargeResult | undefined {
  const marked = (metadata as { large_result?: unknown } | null | undefined)?.large_result !== undefined;
  return marked && isLargeResult(output) ? output : undefined;
}

export async function* parts(transport: Transport, large: LargeResult, options: InvokeOptions): AsyncGenerator<unknown, void, void> {
  if (!isLargeResult(large)) throw invalidArgument("this is not a large result; isLargeResult says what is one", large);
  if (large.truncated || typeof large.part_prefix !== "string") {
    throw new RcrtError("the rest of this result is lost; call the tool with a session, or with a larger maxResultChars", "no_parts", false, { cause: large });
  }
  for (let number = 1; number <= large.parts; number++) {
    const response = await invoke(transport, READER, { key: `${large.part_prefix}${number}` }, { ...options, maxResultChars: MOST_CHARS });
    if (response.status !== "success") throw new ToolError(response);
    yield response.output;
  }
}
