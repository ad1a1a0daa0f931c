import type { Page } from "@playwright/test";
import { expect, findings, test, type Api } from "./world";

/** Replaces the text of a code editor, as a person who selects everything and types. */
async function write(page: Page, label: string, text: string): Promise<void> {
  await page.getByRole("textbox", { name: label, exact: true }).click();
  await page.keyboard.press("ControlOrMeta+a");
  await page.keyboard.insertText(text);
}

const SLUG = `export async function execute(input: Input): Promise<Output> {
  return { slug: input.text.toLowerCase().replaceAll(" ", "-") };
}
`;

const problems = (page: Page) => page.getByRole("region", { name: "Problems" });

async function slug(api: Api, name: string): Promise<string> {
  return await api.tool(name, SLUG, {
    input_schema: { type: "object", properties: { text: { type: "string", description: "The text." } }, required: ["text"] },
    output_schema: { type: "object", properties: { slug: { type: "string", description: "The slug." } }, required: ["slug"] },
    examples: [{ description: "Two words", input: { text: "Two Words" }, output: { slug: "two-words" } }],
  });
}

test("a tool is written from nothing, tested, published and called", async ({ api, page, open }) => {
  await open("tools");
  await page.getByRole("link", { name: "New tool", exact: true }).click();
  await page.getByRole("tab", { name: "From an example call" }).click();
  await page.getByLabel(/^Name \(by/).fill("shout");
  await page.getByLabel(/^Description/).fill("Makes a text loud.");
  await page.getByLabel(/^Input/).fill('{"text": "Hello"}');
  await page.getByLabel(/^Output/).fill('{"loud": "HELLO!"}');
  await page.getByRole("button", { name: "Write the tool" }).click();
  await expect(page.getByText("not saved yet")).toBeVisible();
  // The example fails until the code is written.
  await page.getByRole("button", { name: "Run examples" }).click();
  await expect(page.getByRole("region", { name: "Example 1" })).toContainText("failed");
  await page.getByRole("tab", { name: "Code" }).click();
  await write(page, "Code", 'export async function execute(input: Input): Promise<Output> {\n  return { loud: input.text.toUpperCase() + "?" };\n}\n');
  await page.keyboard.press("Control+Enter");
  const differences = page.getByRole("group", { name: "Differences of example 1" });
  await expect(differences).toContainText("HELLO?");
  await page.getByRole("tab", { name: "Code" }).click();
  await write(page, "Code", 'export async function execute(input: Input): Promise<Output> {\n  return { loud: input.text.toUpperCase() + "!" };\n}\n');
  await page.keyboard.press("Control+s");
  await expect(page.getByText("is saved, a draft: only you can call it")).toBeVisible();
  await page.getByRole("tab", { name: "Run" }).click();
  await page.getByRole("textbox", { name: /^text/ }).fill("quiet");
  await page.getByRole("button", { name: "Run the tool" }).click();
  await expect(page.getByRole("region", { name: "Result" })).toContainText("QUIET!");
  await page.getByRole("button", { name: "Keep as an example" }).click();
  await page.getByRole("button", { name: "Publish…" }).click();
  await expect(page.getByText("2 passed, 0 failed")).toBeVisible();
  expect(await findings(page)).toEqual([]);
  await page.getByRole("button", { name: "Publish", exact: true }).click();
  await expect(page.getByText("is published: everybody can call it")).toBeVisible();
  expect((await api.call("shout", { text: "abc" }))["output"]).toEqual({ loud: "ABC!" });
});

test("type errors and findings of the validators are in the gutter while one writes", async ({ api, page, open }) => {
  await slug(api, "checked");
  await open("editor/checked");
  await expect(problems(page)).toContainText("No problems");
  await write(page, "Code", "export async function execute(input: Input): Promise<Output> {\n  return { slug: input.txt };\n}\n");
  await expect(problems(page)).toContainText("Property 'txt' does not exist");
  await expect(page.locator(".cm-lint-marker-error")).toHaveCount(1);
  await write(page, "Code", 'export async function execute(input: Input): Promise<Output> {\n  return { slug: eval("1") };\n}\n');
  const finding = problems(page).getByRole("button", { name: /no-eval/ });
  await expect(finding).toContainText("line 2");
  await expect(page.locator(".cm-lint-marker-error")).toHaveCount(1);
  // A result that the schema does not allow, although the source has types of its own.
  await write(page, "Code", "export async function execute(input: { text: string }): Promise<{ slug: number }> {\n  return { slug: input.text.length };\n}\n");
  await expect(problems(page)).toContainText("execute does not fit the schemas");
  // The types follow the schema.
  await page.getByRole("tab", { name: "Output" }).click();
  await page.getByLabel("Type of slug").selectOption("integer");
  await page.getByRole("tab", { name: "Code" }).click();
  await expect(problems(page)).not.toContainText("execute does not fit");
  await page.getByRole("tab", { name: "Examples" }).click();
  await write(page, "Definition as JSON", '{"name": "checked", "description": "", "code": {"language": "typescript"}, "input_schema": {"type": "object"}, "examples": [{"input": 7}]}');
  await problems(page).getByRole("button", { name: /examples\[0\].input/ }).click();
  await expect(page.getByRole("textbox", { name: "Definition as JSON" })).toBeFocused();
});

test("names of the input and of other tools are completed", async ({ api, page, open }) => {
  await slug(api, "completed");
  await open("editor/completed");
  await expect(problems(page)).toContainText("No problems");
  await write(page, "Code", "export async function execute(input: Input, context: Context): Promise<Output> {\n  return { slug: input");
  await page.keyboard.type(".te");
  const list = page.getByRole("listbox", { name: "Completions" });
  // Enter right after the list appears is a new line.
  await list.getByRole("option", { name: /^text/ }).click();
  await page.keyboard.type(" };\n}\n");
  await expect(problems(page)).toContainText("No problems");
});

test("forms and JSON are two views of one definition", async ({ api, page, open }) => {
  await slug(api, "formed");
  await open("editor/formed?tab=input");
  const json = page.getByRole("textbox", { name: "Definition as JSON" });
  await page.getByLabel("Name of a new field of Input").fill("limit");
  await page.getByRole("button", { name: "Add the field" }).click();
  await page.getByLabel("Type of limit").selectOption("integer");
  await page.getByLabel("Description of limit").fill("The most characters.");
  await page.getByRole("list", { name: "Fields of Input" }).getByLabel("required").last().uncheck();
  await expect(json).toContainText('"The most characters."');
  await page.getByRole("tab", { name: "Permissions and limits" }).click();
  await page.getByLabel("Only these hosts").check();
  await page.getByLabel("Hosts, one on each line").fill("api.example.com");
  await page.getByLabel("Memory (MiB)").fill("2000");
  await page.getByLabel("Memory (MiB)").blur();
  await expect(problems(page).getByRole("button", { name: /limits\.memory_mb/ })).toBeVisible();
  await page.getByLabel("Memory (MiB)").fill("64");
  await page.getByLabel("Memory (MiB)").blur();
  await page.getByRole("button", { name: "Save draft" }).click();
  await expect(page.getByText("is saved, a draft")).toBeVisible();
  const [draft] = await api.send<{ id: string }[]>("GET", "/breadcrumbs?tag=tool:draft&tag=tool:formed");
  const { context } = await api.send<{ context: Record<string, unknown> }>("GET", `/breadcrumbs/${draft?.id}/full`);
  expect(context["permissions"]).toEqual({ net: ["api.example.com"] });
  expect(context["limits"]).toEqual({ memory_mb: 64 });
  expect(context["input_schema"]).toMatchObject({ required: ["text"], properties: { limit: { type: "integer" } } });
  // Others still call the published version.
  expect((await api.call("formed", { text: "A B" }, {}))["status"]).toBe("success");
});

test("two tabs that edit one tool both keep their work", async ({ api, page, open, context }) => {
  const id = await slug(api, "shared-tool");
  await open("editor/shared-tool");
  await expect(problems(page)).toContainText("No problems");
  await write(page, "Code", `// Mine.\n${SLUG.replace("toLowerCase", "toUpperCase")}`);
  const other = await context.newPage();
  await other.addInitScript((token) => sessionStorage.setItem("rcrt.token", token), api.token);
  await other.goto(page.url());
  await expect(problems(other)).toContainText("No problems");
  await write(other, "Code", `${SLUG.replace("toLowerCase()", "trim()")}// Theirs.\n`);
  await other.getByRole("tab", { name: "Description" }).click();
  await other.getByLabel(/^Description/).fill("Their description.");
  await other.keyboard.press("Control+s");
  await expect(other.getByText("is saved, a draft")).toBeVisible();
  // The first tab notices, and writes nothing over it.
  await expect(page.getByText("wrote version 2")).toBeVisible();
  await expect(page.getByRole("button", { name: "Save draft" })).toBeDisabled();
  await page.getByRole("button", { name: "Compare and merge" }).click();
  const merge = page.getByRole("dialog");
  await expect(merge.getByRole("region", { name: "Source, conflict 1", exact: true })).toContainText("toUpperCase");
  await expect(merge.getByRole("button", { name: "Use the result" })).toBeDisabled();
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    expect(await findings(page)).toEqual([]);
  }
  await merge.getByRole("group", { name: "Source, conflict 1" }).getByLabel("Mine", { exact: true }).check();
  await merge.getByRole("button", { name: "Use the result" }).click();
  await page.getByRole("button", { name: "Save draft" }).click();
  await expect(page.getByText("Version 3 is saved, a draft")).toBeVisible();
  const record = await api.send<{ context: { description: string; code: { source: string } } }>("GET", `/breadcrumbs/${id}/full`);
  expect(record.context.description).toBe("Their description.");
  for (const part of ["// Mine.", "toUpperCase()", "// Theirs."]) expect(record.context.code.source).toContain(part);
  // Without changes of its own, the other tab shows the new version.
  await other.getByRole("tab", { name: "Code" }).click();
  await expect(other.getByRole("textbox", { name: "Code" })).toContainText("toUpperCase");
  await other.close();
});

test("unsaved changes are back after a reload, and can be discarded", async ({ api, page, open }) => {
  await slug(api, "kept-tool");
  await open("editor/kept-tool");
  await expect(problems(page)).toContainText("No problems");
  await write(page, "Code", `// Not saved.\n${SLUG}`);
  await expect(page.getByText("unsaved changes", { exact: true })).toBeVisible();
  const asked = page.waitForEvent("dialog");
  const reloaded = page.reload();
  const dialog = await asked;
  expect(dialog.type()).toBe("beforeunload");
  await dialog.accept();
  await reloaded;
  await expect(page.getByText(/Your unsaved changes of .* are back/)).toBeVisible();
  await expect(page.getByRole("textbox", { name: "Code" })).toContainText("Not saved");
  await page.getByRole("button", { name: "Discard changes" }).click();
  await page.getByRole("button", { name: "Discard the changes" }).click();
  await expect(page.getByRole("textbox", { name: "Code" })).not.toContainText("Not saved");
});

test("a call is kept as an example of its tool", async ({ api, page, open }) => {
  await slug(api, "called");
  const call = await api.call("called", { text: "From A Call" });
  await open(`calls/${call.request}`);
  await page.getByRole("link", { name: "Save as example" }).click();
  await expect(page.getByLabel("Input of example 2")).toHaveValue(/From A Call/);
  await expect(page.getByLabel("Output of example 2")).toHaveValue(/from-a-call/);
  await page.keyboard.press("Control+Enter");
  await expect(page.getByRole("region", { name: "Example 2" })).toContainText("passed");
  await expect(page.getByText("unsaved changes", { exact: true })).toBeVisible();
});

test("an older version is rolled back to", async ({ api, page, open }) => {
  const id = await slug(api, "rolled");
  const read = await api.send<{ context: Record<string, unknown> }>("GET", `/breadcrumbs/${id}/full`);
  const source = SLUG.replace("toLowerCase", "toUpperCase");
  await api.send("PATCH", `/breadcrumbs/${id}`, { context: { ...read.context, examples: [{ input: { text: "a" } }], code: { language: "typescript", source } } }, { "if-match": '"1"' });
  await open("editor/rolled?tab=versions");
  await page.getByRole("list", { name: "Versions" }).getByRole("button", { name: /Version 1/ }).click();
  await page.getByRole("button", { name: "Roll back to this version" }).click();
  await page.getByRole("button", { name: "Roll back", exact: true }).click();
  await expect(page.getByText("Version 1 is now version 3.")).toBeVisible();
  expect((await api.call("rolled", { text: "A B" }))["output"]).toEqual({ slug: "a-b" });
});

test("a tool is made from a template, and from a REST description", async ({ page, open }) => {
  await open("editor");
  await page.getByLabel(/^Name \(by/).fill("searcher");
  await page.getByRole("radio", { name: /http-api/ }).check();
  await page.getByLabel(/^host/).fill("search.example.com");
  await page.getByRole("button", { name: "Write the tool" }).click();
  await expect(page.getByRole("textbox", { name: "Code" })).toContainText('const HOST = "search.example.com";');
  await expect(problems(page)).not.toContainText("TypeScript");

  await open("editor?from=rest");
  await page.getByLabel(/^Name \(by/).fill("pet");
  const document = {
    openapi: "3.1.0",
    servers: [{ url: "https://pets.example.com/v2" }],
    paths: {
      "/pets/{id}": {
        get: {
          operationId: "getPet",
          summary: "Reads a pet.",
          parameters: [{ name: "id", in: "path", required: true, schema: { type: "integer" }, example: 7 }, { name: "lang", in: "query", schema: { type: "string" } }],
          responses: { "200": { content: { "application/json": { schema: { $ref: "#/components/schemas/Pet" }, example: { name: "Rex" } } } } },
          security: [{ key: [] }],
        },
      },
    },
    components: { schemas: { Pet: { type: "object", properties: { name: { type: "string" } }, required: ["name"] } }, securitySchemes: { key: { type: "apiKey", in: "header", name: "x-key" } } },
  };
  await page.getByLabel(/^OpenAPI document/).fill(JSON.stringify(document));
  await expect(page.getByLabel("Operation")).toContainText("GET /pets/{id}");
  await page.getByRole("button", { name: "Write the tool" }).click();
  await expect(problems(page)).toContainText("No problems");
  // The test runs the generated code against the described response.
  await page.getByRole("button", { name: "Run examples" }).click();
  await expect(page.getByRole("region", { name: "Example 1" })).toContainText("passed");
});

test("a tool is made from an OpenAPI document in YAML, also from a file", async ({ page, open }) => {
  await open("editor?from=rest");
  const document = `# Pets
openapi: 3.1.0
servers:
  - url: https://pets.example.com/v2
paths:
  /pets/{id}:
    get:
      operationId: getPet
      summary: Reads a pet.
      parameters:
        - {name: id, in: path, required: true, schema: {type: integer}, example: 7}
      responses:
        200:
          content:
            application/json:
              schema: {$ref: "#/components/schemas/Pet"}
              example: {name: Rex}
components:
  schemas:
    Pet: {type: object, properties: {name: {type: string}}, required: [name]}
`;
  const text = page.getByLabel(/^OpenAPI document/);
  await text.fill("openapi: [3.1.0");
  await expect(page.getByRole("alert")).toContainText("neither JSON nor YAML");
  await text.fill("swagger: '2.0'");
  await expect(page.getByRole("alert")).toContainText("Swagger 2");
  await page.getByLabel(/^Or a file/).setInputFiles({ name: "pets.yaml", mimeType: "application/yaml", buffer: Buffer.from(document) });
  await expect(page.getByLabel("Operation")).toContainText("GET /pets/{id}");
  await expect(page.getByLabel(/^Name \(by/)).toHaveValue("getPet");
  await page.getByRole("button", { name: "Write the tool" }).click();
  await expect(problems(page)).toContainText("No problems");
  await page.getByRole("button", { name: "Run examples" }).click();
  await expect(page.getByRole("region", { name: "Example 1" })).toContainText("passed");
});

test("an author that is no curator publishes its own tool, and changes no other", async ({ api, page, open }) => {
  await slug(api, "of-others");
  await page.addInitScript((token) => sessionStorage.setItem("rcrt.token", token), await api.agent("writes tools", ["emitter", "subscriber"]));
  await open("editor?from=example");
  await page.getByLabel(/^Name \(by/).fill("own-tool");
  await page.getByLabel(/^Input/).fill('{"n": 2}');
  await page.getByLabel(/^Output/).fill('{"n": 4}');
  await page.getByRole("button", { name: "Write the tool" }).click();
  await expect(problems(page)).not.toContainText("Checking");
  await open("editor");
  await page.getByRole("link", { name: "own-tool" }).click();
  await write(page, "Code", "export async function execute(input: Input): Promise<Output> {\n  return { n: input.n * 2 };\n}\n");
  await page.getByRole("tab", { name: "Description" }).click();
  await page.getByLabel(/^Description/).fill("Doubles a number.");
  await page.getByRole("button", { name: "Publish…" }).click();
  await expect(page.getByText("1 passed, 0 failed")).toBeVisible();
  await page.getByRole("button", { name: "Publish", exact: true }).click();
  await expect(page.getByText("is published: everybody can call it")).toBeVisible();
  expect((await api.call("own-tool", { n: 21 }))["output"]).toEqual({ n: 42 });
  await open("editor/of-others");
  await expect(page.getByText("Only its author and curators can change of-others")).toBeVisible();
});

test("the editor is only offered to those who can write", async ({ api, page, open }) => {
  await slug(api, "not-mine");
  await page.addInitScript((token) => sessionStorage.setItem("rcrt.token", token), await api.agent("reads tools", ["subscriber"]));
  await open("tools/not-mine");
  await expect(page.getByRole("heading", { name: "not-mine" })).toBeVisible();
  await expect(page.getByRole("link", { name: "Edit" })).toHaveCount(0);
  await open("editor/not-mine");
  await expect(page.getByRole("heading", { name: "No such screen" })).toBeVisible();
});

for (const theme of ["light", "dark"] as const) {
  test(`the editor has no findings of axe in the ${theme} theme, and fits`, async ({ api, page, open }) => {
    test.slow();
    await page.emulateMedia({ colorScheme: theme, reducedMotion: "reduce" });
    const name = `accessible-${theme}`;
    await slug(api, name);
    const found: string[] = [];
    for (const tab of ["about", "input", "output", "permissions", "examples", "run", "versions", "code"]) {
      await open(`editor/${name}?tab=${tab}`);
      await expect(problems(page)).toContainText("No problems");
      if (tab === "code") {
        await write(page, "Code", "// A comment.\nexport async function execute(input: Input): Promise<Output> {\n  const n = 7;\n  return { slug: input.nothing + n };\n}\n");
        await expect(problems(page)).toContainText("does not exist");
      }
      found.push(...(await findings(page)).map((finding) => `${tab}: ${finding}`));
      await page.setViewportSize({ width: 360, height: 800 });
      const wide = await page.evaluate(() => (document.querySelector("main")?.scrollWidth ?? 0) - (document.querySelector("main")?.clientWidth ?? 0));
      if (wide > 0) found.push(`${tab} is ${wide} pixels too wide at 360`);
      await page.setViewportSize({ width: 1360, height: 850 });
    }
    for (const from of ["template", "rest", "example"]) {
      await open(`editor?from=${from}`);
      await expect(page.getByRole("heading", { name: "New tool" })).toBeVisible();
      found.push(...(await findings(page)).map((finding) => `new ${from}: ${finding}`));
    }
    expect(found).toEqual([]);
  });
}
