/** Tools that an agent makes, on the running server. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { ToolError } from "../src/index.js";
import { curator, word } from "./world.js";

function doubling(name: string, output: number): Record<string, unknown> {
  const number = { type: "object", properties: { n: { type: "number", description: "A number." } }, required: ["n"] };
  return {
    name,
    description: "Doubles a number.",
    code: { language: "typescript", source: "export async function execute(input: { n: number }) { return { n: 2 * input.n }; }" },
    input_schema: number,
    output_schema: number,
    examples: [{ description: "Four", input: { n: 4 }, output: { n: output } }],
  };
}

test("a tool is validated, tested, created and called", async () => {
  const client = curator();
  const name = word();
  const source = "export async function execute(input: object) { return input; }";
  const found = await client.validateTool({ name, code: { language: "typescript", source } });
  assert.equal(found.valid, false);
  assert.ok(found.validation.errors.some((one) => one.rule === "description" && one.fix !== undefined));
  assert.equal((await client.validateTool(doubling(name, 8))).valid, true);
  assert.match(await client.toolTypes(doubling(name, 8)), /type Input = \{/);
  assert.match(await client.toolTypes(), /declare namespace tools/);

  const failing = await client.testTool(doubling(name, 9));
  assert.deepEqual([failing.passed, failing.examples[0]?.status, failing.examples[0]?.actual], [false, "failed", { n: 8 }]);
  assert.equal((await client.testTool(doubling(name, 8))).passed, true);
  await assert.rejects(client.call(name, { n: 1 }), (error) => error instanceof ToolError && error.code === "ToolNotFound");

  assert.equal((await client.createTool(doubling(name, 9))).status, "rejected");
  const created = await client.createTool(doubling(name, 8));
  assert.deepEqual([created.status, created.draft, created.record_version], ["created", false, 1]);
  assert.deepEqual(await client.call(name, { n: 21 }), { n: 42 });
  const changed = { ...doubling(name, 8), description: "Doubles a number exactly." };
  assert.equal((await client.createTool(changed, { mode: "update", ifVersion: 1 })).status, "updated");
  await assert.rejects(client.publishTool(name), { code: "tool_not_found" });
});
