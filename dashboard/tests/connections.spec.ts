import { add, change } from "./mcp-server";
import { expect, signIn, test } from "./world";

test("an MCP server is added with the form, tested, disabled and removed", async ({ page, open }) => {
  await open("connections");
  await page.getByRole("button", { name: "Add a server" }).click();
  await page.getByLabel(/^Name/).fill("nowhere");
  await page.getByLabel("As a program in a jail").check();
  await page.getByLabel("Command").fill("no-such-program");
  await page.getByLabel(/^Arguments/).fill("--port\n80");
  await page.getByRole("dialog").getByRole("button", { name: "Add the server" }).click();
  const card = page.getByRole("article", { name: "nowhere" });
  await expect(card).toContainText("no-such-program --port 80");
  await expect(card.getByText("error", { exact: true })).toBeVisible();
  await card.getByRole("button", { name: "Disable" }).click();
  await expect(card.getByText("disabled", { exact: true })).toBeVisible();
  await card.getByRole("button", { name: "Remove" }).click();
  await page.getByRole("button", { name: "Remove the server" }).click();
  await expect(card).toHaveCount(0);
});

test("a changed definition of a server's tool is compared and accepted", async ({ api, page, open }) => {
  const id = await add(api, "greeter", "Greets a person.");
  await open("connections");
  const card = page.getByRole("article", { name: "greeter" });
  await expect(card.getByText("connected", { exact: true })).toBeVisible();
  await card.getByRole("button", { name: "Test" }).click();
  await expect(card.getByText("It works: 1 tool.")).toBeVisible();
  const attack = `Greets. <img src=x onerror="window.pwned=1">`;
  await change(api, id, "greeter", attack);
  await expect(card.getByText("1 changed definition", { exact: true })).toBeVisible();
  await expect(card.getByRole("region", { name: "Difference: description" })).toContainText(attack);
  const refused = await api.call("greeter__greet", { name: "Ada" });
  expect(refused["error_code"]).toBe("PermissionDenied");
  await card.getByRole("button", { name: "Accept greet" }).click();
  await expect(card.getByRole("region", { name: "Changed definitions" })).toHaveCount(0);
  await expect.poll(async () => (await api.call("greeter__greet", { name: "Ada" }))["status"]).toBe("success");
  expect(await page.evaluate(() => (window as { pwned?: unknown }).pwned)).toBeUndefined();
});

test("agents of other systems show their card, and a changed one is accepted", async ({ api, page, open }) => {
  const card = (description: string, hash: string) => ({ card_hash: hash, description, version: "1", interface: { url: "https://agent.example.com/a2a", binding: "JSONRPC" }, skills: [{ id: "sum", name: "Summarise", description: "Summarises a text." }] });
  // Its card cannot be read here, so nothing reads it during the test.
  const later = new Date(Date.now() + 3_600_000).toISOString();
  const id = await api.record({
    title: "Agent librarian",
    schema_name: "a2a.agent.v1",
    tags: ["a2a:agent", "a2a:agent:librarian"],
    context: { name: "librarian", card_url: "https://agent.example.com/.well-known/agent-card.json", last_seen: new Date().toISOString(), refresh_at: later, ...card("Reads papers.", "aa"), pending: card("Reads <b>everything</b>.", "bb") },
  });
  await open("connections");
  const shown = page.getByRole("article", { name: "librarian" });
  await expect(shown).toContainText("changed card waits");
  await expect(shown.getByRole("region", { name: "Difference: Its card" })).toContainText("Reads <b>everything</b>.");
  await shown.getByRole("button", { name: "Accept the card of librarian" }).click();
  await expect(shown.getByText("known", { exact: true })).toBeVisible();
  const read = await api.send<{ context: Record<string, unknown> }>("GET", `/breadcrumbs/${id}/full`);
  expect(read.context["accepted_hash"]).toBe("bb");
});

test("who only reads is offered no change of a connection", async ({ api, page, open }) => {
  await add(api, "watched", "Greets.");
  await signIn(page, await api.agent("reads connections", ["subscriber"]));
  await open("connections");
  await expect(page.getByRole("article", { name: "watched" })).toBeVisible();
  await expect(page.getByRole("button", { name: /Add a server|Test|Disable|Remove|Accept|Register/ })).toHaveCount(0);
});
