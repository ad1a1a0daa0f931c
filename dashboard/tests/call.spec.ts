import { expect, test } from "./world";

test("a failed call shows where its source failed", async ({ api, page, open }) => {
  const call = await api.call("calculator", { expression: "1/0" });
  await open(`calls/${call.request}`);
  await expect(page.getByRole("heading", { name: /ExecutionFailed/ })).toContainText("Division by zero");
  await expect(page.locator("[data-marked]")).toContainText("throw new Error");
  await expect(page.getByRole("region", { name: "Input" })).toContainText("1/0");
  const stages = page.getByRole("list", { name: "Stages of the call" });
  for (const stage of ["queue", "claim", "load", "run", "write"]) await expect(stages).toContainText(stage);
});

test("a call is made again, and with another input", async ({ api, page, open }) => {
  const call = await api.call("calculator", { expression: "6*7" });
  await open(`calls/${call.request}`);
  await expect(page.getByRole("region", { name: "Output" })).toContainText("42");
  await page.getByRole("button", { name: "Call again" }).click();
  await expect(page).not.toHaveURL(new RegExp(call.request));
  await expect(page.getByRole("region", { name: "Output" })).toContainText("42");
  await page.getByRole("link", { name: "Edit and call" }).click();
  await expect(page.getByLabel("expression")).toHaveValue("6*7");
  await page.getByLabel("expression").fill("6*8");
  await page.getByRole("button", { name: "Run the tool" }).click();
  await expect(page.getByRole("region", { name: "Result" })).toContainText("48");
});

test("a running call shows its progress and is cancelled", async ({ api, page, open }) => {
  await api.tool(
    "slow",
    `export async function execute(input, context) {
      console.log("begun");
      context.progress(0.25, "a quarter is done");
      for (;;) await new Promise((resolve) => setTimeout(resolve, 50));
    }`,
    { limits: { timeout_ms: 300000 }, examples: [{ description: "It waits.", input: {} }] },
  );
  const call = await api.call("slow", {}, { wait: 0 });
  await open(`calls/${call.request}`);
  await expect(page.getByText("running", { exact: true })).toBeVisible();
  await page.getByRole("button", { name: "Cancel the call" }).click();
  await expect(page.getByRole("heading", { name: /Cancelled/ })).toBeVisible();
  await expect(page.getByRole("button", { name: "Cancel the call" })).toHaveCount(0);
});

test("the console of a call is shown, also with many lines", async ({ api, page, open }) => {
  await api.tool("talkative", `export async function execute() { for (let i = 0; i < 500; i++) console.log("line " + i); console.warn("the end"); return { done: true }; }`);
  const call = await api.call("talkative", {});
  await open(`calls/${call.request}`);
  const lines = page.getByRole("region", { name: "Console" });
  await expect(lines).toContainText("line 0");
  await page.getByLabel("Lines with these words").fill("the end");
  await expect(lines.getByRole("button", { name: /the end/ })).toBeVisible();
});

test("a call is copied as code, and a large output opens in steps", async ({ api, page, open }) => {
  await api.tool("large", `export async function execute() { return { list: Array.from({ length: 5000 }, (_, i) => ({ i, text: "x".repeat(300) })) }; }`, { limits: { memory_mb: 256 } });
  const call = await api.send<{ metadata: { request: string } }>("POST", "/tools/large/invoke", { input: {}, max_result_chars: 4000000 }, { prefer: "wait=60" });
  await open(`calls/${call.metadata.request}`);
  const output = page.getByRole("region", { name: "Output" });
  await expect(output.getByText("[5000 items]")).toBeVisible();
  expect(await output.locator(".node").count()).toBeLessThan(500);
  await output.getByRole("button", { name: /Show more/ }).click();
  await expect(output.getByText("1099", { exact: true }).first()).toBeVisible();
  await page.getByRole("tab", { name: "Python" }).click();
  await expect(page.getByRole("region", { name: "The call in Python" })).toContainText('rcrt.call("large"');
});

test("a large result is read by its outline, its words and its parts", async ({ api, page, open }) => {
  const text = `# First chapter\n${"some words ".repeat(7000)}\n# Second chapter\na needle\n${"more words ".repeat(7000)}`;
  const call = await api.call("echo", { message: text }, { session: "outline" });
  await open(`calls/${call.request}`);
  const output = page.getByRole("region", { name: "Output" });
  await output.getByRole("list", { name: "Outline of the result" }).getByRole("button").last().click();
  await expect(output.getByRole("region", { name: /^Part/ })).toContainText("more words");
  await output.getByLabel("Words in the result").fill("needle");
  await output.getByRole("button", { name: "Find" }).click();
  await output.getByRole("list", { name: "Passages" }).getByRole("button").first().click();
  await expect(output.getByRole("list", { name: "Passages" })).toContainText("a needle");
  await expect(output.getByRole("region", { name: "Part 2" })).toBeVisible();
  await output.getByRole("button", { name: "Previous" }).click();
  await expect(output.getByRole("region", { name: "Part 1" })).toContainText("First chapter");
});

test("2 MB of JSON and a log of 10,000 lines do not freeze the page", async ({ api, page, open }) => {
  await api.tool(
    "heavy",
    `export async function execute() {
      for (let i = 0; i < 10000; i++) console.log("line " + i + " of many");
      return { rows: Array.from({ length: 20000 }, (_, id) => ({ id, text: "x".repeat(80) })) };
    }`,
    { limits: { memory_mb: 512, timeout_ms: 60000 } },
  );
  const call = await api.send<{ metadata: { request: string } }>("POST", "/tools/heavy/invoke", { input: {}, max_result_chars: 4000000 }, { prefer: "wait=60" });
  await open(`calls/${call.metadata.request}`);
  const output = page.getByRole("region", { name: "Output" });
  await expect(output.getByText("[20000 items]")).toBeVisible();
  const lines = page.getByRole("region", { name: "Console" });
  await expect(lines.locator("li").first()).toBeVisible();
  // Only what is visible is in the page, also at the end of the log.
  const elements = async () => await page.locator("main *").count();
  expect(await elements()).toBeLessThan(6000);
  await lines.locator(".viewport").evaluate((list) => list.scrollTo(0, list.scrollHeight));
  const last = await lines.locator("li").first().getAttribute("aria-setsize");
  await expect(lines.locator(`li[aria-posinset="${last}"]`)).toContainText("of many");
  expect(await elements()).toBeLessThan(6000);
});

test("a call is debugged: its console while it runs, and what it asks the store for", async ({ api, page, open }) => {
  await api.tool(
    "searches",
    `export async function execute(input, context) {
      console.log("before the search");
      const found = await context.api.searchBreadcrumbs({ schema_name: "none.v1", limit: 1 });
      await new Promise((resolve) => setTimeout(resolve, input.wait ?? 0));
      return { found: found.length };
    }`,
    { limits: { timeout_ms: 60000 }, input_schema: { type: "object", properties: { wait: { type: "integer" } } } },
  );
  const call = await api.call("searches", { wait: 3000 });
  await open(`calls/${call.request}`);
  await page.getByRole("button", { name: "Debug" }).click();
  await expect(page.getByText("running", { exact: true })).toBeVisible();
  await expect(page.getByRole("region", { name: "Console" })).toContainText("before the search");
  await expect(page.getByText("running", { exact: true })).toBeVisible();
  await expect(page.getByRole("list", { name: "Stages of the call" })).toContainText("context.api");
  await expect(page.getByRole("region", { name: "Facts" })).toContainText("Most memory");
});

test("a call names its parent and its children", async ({ api, page, open }) => {
  const made = await api.call("workflow", { steps: [{ id: "one", tool: "echo", input: { message: "from the workflow" } }] });
  await open(`calls/${made.request}`);
  const children = page.getByRole("region", { name: "Calls by this call" });
  await expect(page.getByRole("list", { name: "Stages of the call" }).getByRole("link", { name: "echo" })).toBeVisible();
  await children.getByRole("link", { name: "echo" }).click();
  await expect(page.getByRole("region", { name: "Output" })).toContainText("from the workflow");
  await page.getByRole("link", { name: /the call/ }).click();
  await expect(page.getByRole("heading", { name: "workflow" })).toBeVisible();
});

test("a text in JSON is told from a number", async ({ api, page, open }) => {
  const { request } = await api.call("json-transform", { data: { text: "5", number: 5 }, steps: [{ op: "omit", paths: ["nothing"] }] });
  await open(`calls/${request}`);
  const output = page.getByRole("region", { name: "Output" });
  await expect(output.getByText('"5"', { exact: true })).toBeVisible();
  await expect(output.getByText("5", { exact: true })).toBeVisible();
});
