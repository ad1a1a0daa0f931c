/** A tool from an example call: schemas that fit it, and the example as the first test. */
import { pretty } from "../../lib/format";
import { isObject, type ToolText } from "../definition";
import { described, inferred } from "./infer";

export interface ExampleCall {
  input: unknown;
  /** Absent if it is not known yet. */
  output?: unknown;
}

export function fromExample(name: string, description: string, call: ExampleCall): ToolText {
  const input = isObject(call.input) ? call.input : {};
  const definition = {
    name,
    description,
    version: "0.1.0",
    code: { language: "typescript" },
    input_schema: { ...described(inferred(input)), additionalProperties: false },
    ...(call.output === undefined ? {} : { output_schema: described(inferred(call.output)) }),
    permissions: { net: false },
    annotations: { read_only: true, destructive: false, idempotent: true, open_world: false },
    limits: { timeout_ms: 30_000, memory_mb: 64 },
    examples: [{ description: "The example call", input, ...(call.output === undefined ? {} : { output: call.output }) }],
  };
  const source = [
    `// ${description.replaceAll(/\s+/g, " ")}`,
    "",
    "export async function execute(input: Input, context: Context): Promise<Output> {",
    '  throw new Error("This tool is not written yet.");',
    "}",
    "",
  ].join("\n");
  return { json: pretty(definition), source };
}
