import { expect, signIn, test } from "./world";

test("a tool is found, run from its form, and its mistakes are shown at the field", async ({ page, open }) => {
  await open("tools");
  await page.getByLabel("Search tools").fill("arithmetic");
  await page.getByRole("link", { name: /^calculator/ }).click();
  const json = page.getByLabel("The same as JSON");
  await page.getByLabel("expression").fill("2**10");
  await expect(json).toHaveValue(/"expression": "2\*\*10"/);
  await page.getByLabel("expression").press("Control+Enter");
  const result = page.getByRole("region", { name: "Result" });
  await expect(result).toContainText("1024");
  await json.fill('{"expression": 5}');
  await page.getByRole("button", { name: "Run the tool" }).click();
  await expect(result).toContainText("InvalidArguments");
  await expect(page.locator(".field").getByRole("alert")).toContainText("must be of type string");
  await json.fill("{");
  await expect(page.getByRole("button", { name: "Run the tool" })).toBeDisabled();
  await expect(page.getByText("The form is back")).toBeVisible();
});

test("the definition says in words what a tool takes and may do", async ({ api, page, open }) => {
  await api.tool("described", "export async function execute(input) { return input; }", {
    permissions: { net: ["api.example.com"] },
    limits: { timeout_ms: 5000 },
    input_schema: {
      type: "object",
      properties: {
        mode: { enum: ["fast", "exact"], description: "How to compute." },
        items: { type: "array", items: { type: "object", properties: { id: { type: "integer", minimum: 1 } }, required: ["id"] } },
        urgent: { type: "boolean" },
        names: { type: "array", items: { type: "string" } },
      },
      required: ["mode"],
    },
    examples: [{ description: "Fast.", input: { mode: "fast" } }],
  });
  await open("tools/described?tab=about");
  await expect(page.getByText("It can reach api.example.com.")).toBeVisible();
  await expect(page.getByRole("row", { name: /items\[\]\.id/ })).toContainText("at least 1");
  await expect(page.getByText("Time of one attempt")).toBeVisible();
  await page.getByRole("tab", { name: "Run" }).click();
  await page.getByLabel("mode").selectOption("exact");
  await page.getByLabel("urgent").selectOption("true");
  await page.getByLabel("names").fill("Ada\nGrace");
  await page.getByLabel("items").fill('[{"id": 7}]');
  await expect.poll(async () => JSON.parse(await page.getByLabel("The same as JSON").inputValue())).toEqual({ mode: "exact", urgent: true, names: ["Ada", "Grace"], items: [{ id: 7 }] });
  await page.getByRole("tab", { name: "Examples" }).click();
  await page.getByRole("link", { name: "Run with this input" }).click();
  await expect(page.getByLabel("mode")).toHaveValue('"fast"');
});

test("versions of a tool are compared, and a rejected one says why", async ({ api, page, open }) => {
  const id = await api.tool("changing", 'export async function execute() { return "old"; }');
  const read = await api.send<{ version: number; context: Record<string, unknown> }>("GET", `/breadcrumbs/${id}/full`);
  await api.send("PATCH", `/breadcrumbs/${id}`, { context: { ...read.context, code: { language: "typescript", source: 'export async function execute() { return "new"; }' } } }, { "if-match": `"${read.version}"` });
  await open("tools/changing?tab=versions");
  const diff = page.getByRole("region", { name: "Difference: Source" });
  await expect(diff.locator(".removed")).toContainText('return "old"');
  await expect(diff.locator(".added")).toContainText('return "new"');
  await api.send("PATCH", `/breadcrumbs/${id}`, { context: { ...read.context, code: { language: "typescript", source: "export const nothing = 1;" } } }, { "if-match": `"${read.version + 1}"` });
  await expect(page.getByText(/Version 3 was rejected; version 2 is still offered/)).toBeVisible();
  await open("tools?state=rejected");
  await expect(page.getByRole("link", { name: /changing/ })).toBeVisible();
});

test("a tool that waits says what for", async ({ page, open }) => {
  await open("tools?state=waiting");
  await page.getByRole("link", { name: /^openrouter/ }).click();
  await expect(page.getByText("It cannot be called yet")).toBeVisible();
  await expect(page.getByRole("tab", { name: "Run" })).toHaveCount(0);
});

test("a secret that a tool waits for is entered and granted there", async ({ api, page, open }) => {
  const source = "export async function execute(input) { return input; }";
  const needs = { required_secrets: ["HELD_KEY"], permissions: { net: ["api.example.com"] } };
  for (const name of ["holds-one", "holds-two"]) await api.tool(name, source, needs);
  await open("tools/holds-one");
  await page.getByRole("button", { name: "Enter HELD_KEY" }).click();
  const dialog = page.getByRole("dialog", { name: "Enter HELD_KEY for holds-one" });
  await expect(dialog.getByLabel(/^Hosts/)).toHaveValue("api.example.com");
  await dialog.getByLabel(/^Value/).fill("a value that is held");
  await dialog.getByRole("button", { name: "Store and grant it" }).click();
  await expect(page.getByRole("tab", { name: "Run" })).toBeVisible();
  expect(await page.content()).not.toContain("a value that is held");
  // The same secret for another tool needs no value.
  await open("tools/holds-two");
  await page.getByRole("button", { name: "Grant HELD_KEY" }).click();
  await page.getByRole("button", { name: "Grant the secret" }).click();
  await expect(page.getByRole("tab", { name: "Run" })).toBeVisible();
  const secrets = await api.send<{ name: string; hosts: string[]; tools: { tool: string }[] }[]>("GET", "/secrets");
  const stored = secrets.find((secret) => secret.name === "HELD_KEY");
  expect(stored?.hosts).toEqual(["api.example.com"]);
  expect(stored?.tools.map((one) => one.tool).sort()).toEqual(["holds-one", "holds-two"]);
});

test("who is no curator sees that a tool waits for a secret, and cannot enter it", async ({ api, page, open }) => {
  await api.tool("holds-another", "export async function execute(input) { return input; }", { required_secrets: ["OTHER_KEY"] });
  await signIn(page, await api.agent("waits for a curator", ["emitter", "subscriber", "runner"]));
  await open("tools/holds-another");
  await expect(page.getByText(/"OTHER_KEY" does not exist; a curator can fix it/)).toBeVisible();
  await expect(page.getByRole("button", { name: /OTHER_KEY/ })).toHaveCount(0);
});

test("a call that the form waits for shows its progress, and is cancelled there", async ({ api, page, open }) => {
  await api.tool(
    "waited-for",
    `export async function execute(input, context) {
      context.progress(0.25, "a quarter is done");
      for (;;) await new Promise((resolve) => setTimeout(resolve, 50));
    }`,
    { limits: { timeout_ms: 300000 }, examples: [{ description: "It waits.", input: {} }] },
  );
  await open("tools/waited-for?tab=run");
  await page.getByRole("button", { name: "Run the tool" }).click();
  await expect(page.getByText("a quarter is done")).toBeVisible();
  await expect(page.getByRole("progressbar")).toHaveAttribute("value", "0.25");
  const call = (await page.getByRole("link", { name: "Open the call" }).getAttribute("href"))?.split("/").at(-1);
  await page.getByRole("button", { name: "Cancel", exact: true }).click();
  await expect(page.getByText("You cancelled the call.")).toBeVisible();
  await expect.poll(async () => (await api.send<{ error_code?: string }>("GET", `/calls/${call}`)).error_code).toBe("Cancelled");
});

test("the chart of a few calls has its axes, and without a call it says so", async ({ api, page, open }) => {
  await api.tool("rarely-called", "export async function execute(input) { return input; }");
  await open("tools/rarely-called?tab=calls");
  const chart = page.getByRole("region", { name: "Last 7 days" });
  await expect(chart).toContainText("No call finished in this time.");
  await expect(chart.getByRole("img")).toHaveCount(0);
  await api.call("rarely-called", {});
  await page.reload();
  await expect(chart.getByRole("img", { name: /1 call, 0 failed/ })).toBeVisible();
  await expect(chart).toContainText("1 per h");
  // Twelve of the 168 hours, so that the one bar is seen.
  await expect(chart.locator(".axis")).toHaveText(/^1[12] h ago\s*now$/);
  const [bar, whole] = await Promise.all([chart.locator("rect.all").boundingBox(), chart.getByRole("img").boundingBox()]);
  expect((bar?.width ?? 0) / (whole?.width ?? Number.NaN)).toBeGreaterThan(1 / 20);
});
