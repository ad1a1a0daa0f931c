import { expect, test } from "./world";

test("a record is created, found, changed and deleted", async ({ page, open }) => {
  await open("records");
  await page.getByRole("button", { name: "New record" }).click();
  await page.getByLabel("Title").fill("A note about zebras");
  await page.getByLabel("Schema name", { exact: false }).last().fill("note.v1");
  await page.getByLabel("Context").fill('{"text": "striped"');
  await expect(page.getByRole("dialog").getByRole("alert")).toBeVisible();
  await page.getByLabel("Context").fill('{"text": "striped"}');
  await page.getByRole("button", { name: "Create the record" }).click();
  await expect(page.getByRole("heading", { name: "A note about zebras" })).toBeVisible();
  await page.getByRole("button", { name: "Edit" }).click();
  await page.getByLabel("Context").fill('{"text": "black and white"}');
  await page.getByRole("button", { name: "Save" }).click();
  await expect(page.getByRole("region", { name: "Context" })).toContainText("black and white");
  await page.getByRole("tab", { name: "History" }).click();
  await expect(page.getByRole("region", { name: "Difference: Context" }).locator(".removed")).toContainText("striped");
  await open("records");
  await page.getByLabel("Search records").fill("zebras");
  await page.getByRole("link", { name: /A note about zebras/ }).click();
  await page.getByRole("button", { name: "Delete" }).click();
  await page.getByRole("button", { name: "Delete the record" }).click();
  await expect(page.getByRole("heading", { name: "Records" })).toBeVisible();
});

test("two people who edit one record both keep their work", async ({ api, page, open }) => {
  const id = await api.record({ title: "Shared", context: { text: "first" } });
  await open(`records/${id}`);
  await page.getByRole("button", { name: "Edit" }).click();
  await page.getByLabel("Context").fill('{"text": "mine"}');
  await api.send("PATCH", `/breadcrumbs/${id}`, { context: { text: "theirs" } }, { "if-match": '"1"' });
  await page.getByRole("button", { name: "Save" }).click();
  await expect(page.getByText("Somebody wrote version 2 while you edited version 1")).toBeVisible();
  await expect(page.getByRole("region", { name: "Difference: What they changed" })).toContainText("theirs");
  await page.getByRole("button", { name: "My text replaces theirs" }).click();
  await page.getByRole("button", { name: "Save" }).click();
  await expect(page.getByRole("region", { name: "Context" })).toContainText("mine");
  expect((await api.send<{ version: number }>("GET", `/breadcrumbs/${id}`)).version).toBe(3);
});

test("new records and filters show by themselves", async ({ api, page, open }) => {
  await open("records?schema=diary.v1");
  await expect(page.getByText("No record matches")).toBeVisible();
  await api.record({ title: "Monday", schema_name: "diary.v1", tags: ["week:1"], context: {} });
  await expect(page.getByRole("link", { name: /Monday/ })).toBeVisible();
  await page.getByLabel("Tags").fill("week:2");
  await expect(page.getByText("No record matches")).toBeVisible();
});

test("a record shows what led to it and what it led to", async ({ api, page, open }) => {
  await api.tool("reacts", "export async function execute(input, context) { return { saw: context.trigger_event.breadcrumb_id }; }", {
    subscriptions: [{ schema_name: "order.v1" }],
  });
  const id = await api.record({ title: "Order <b>7</b>", schema_name: "order.v1", tags: ["order"], context: { total: 12 } });
  await expect.poll(async () => (await api.send<{ calls: unknown[] }>("GET", "/calls?tool=reacts")).calls.length).toBe(1);
  await open(`records/${id}?tab=relations`);
  await expect(page.getByRole("list", { name: "What led to it" })).toContainText("written by");
  await page.getByRole("list", { name: "What it led to" }).getByRole("link", { name: /Call reacts/ }).click();
  await expect(page.getByRole("heading", { level: 1, name: "reacts" })).toBeVisible();
  await page.getByRole("link", { name: "a change of a record" }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Order <b>7</b>" })).toBeVisible();
});

test("records are selected by every condition of a selector", async ({ api, page, open }) => {
  for (const [title, price, color] of [["cheap", 3, "red"], ["dear", 30, "blue"], ["odd", 300, "green"]] as const) {
    await api.record({ title: `Item ${title}`, schema_name: "item.v1", tags: [`color:${color}`], context: { price } });
  }
  await open("records?schema=item.v1");
  const list = page.getByRole("list", { name: "Records" }).getByRole("link");
  await expect(list).toHaveCount(3);
  await page.getByText("More conditions of a selector").click();
  await page.getByLabel("Conditions").fill("$.price gt 10");
  await expect(list).toHaveCount(2);
  await page.getByLabel("At least one of").fill("color:red color:blue");
  await expect(list).toHaveCount(1);
  await expect(list.first()).toContainText("Item dear");
  await page.getByLabel("Conditions").fill("price > 10");
  await expect(page.getByText(/is not a path/)).toBeVisible();
});
