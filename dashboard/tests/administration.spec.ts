import { Api, expect, test } from "./world";

test("an agent is made, gets a new key, and is deleted", async ({ page, open }) => {
  await open("agents");
  await page.getByRole("button", { name: "New agent" }).click();
  await page.getByLabel("Name", { exact: true }).fill("helper bot");
  await page.getByLabel("Only some tools").check();
  await page.getByLabel("Names of tools").fill("echo calculator");
  await page.getByRole("button", { name: "Create the agent" }).click();
  await expect(page.getByRole("region", { name: "The key of helper bot" })).not.toBeEmpty();
  await page.getByRole("button", { name: "I have it" }).click();
  const row = page.getByRole("row", { name: /helper bot/ });
  await expect(row).toContainText("echo, calculator");
  await row.getByRole("button", { name: "New key" }).click();
  await page.getByRole("button", { name: "Make a new key" }).click();
  await page.getByRole("button", { name: "I have it" }).click();
  await row.getByRole("button", { name: "Delete" }).click();
  await page.getByRole("button", { name: "Delete the agent" }).click();
  await expect(row).toHaveCount(0);
});

test("a token is revoked", async ({ api, page, open }) => {
  const token = await api.agent("has a token", ["emitter"]);
  await open("tokens");
  const row = page.getByRole("row", { name: /has a token/ });
  await row.getByRole("button", { name: "Revoke" }).click();
  await page.getByRole("button", { name: "Revoke the token" }).click();
  await expect(row).toContainText("revoked");
  const answer = await fetch(`${api.url}/tools`, { headers: { authorization: `Bearer ${token}` } });
  expect(answer.status).toBe(401);
});

test("a secret is stored, granted and deleted, and its value is never shown", async ({ page, open }) => {
  await open("secrets");
  await page.getByRole("button", { name: "New secret" }).click();
  await page.getByLabel(/^Name/).fill("TEST_KEY");
  await page.getByLabel("Value", { exact: false }).first().fill("a very secret value");
  await page.getByLabel(/^Hosts/).fill("api.example.com");
  await page.getByRole("button", { name: "Store the secret" }).click();
  const card = page.getByRole("listitem").filter({ hasText: "TEST_KEY" });
  await expect(card).toContainText("api.example.com");
  await card.getByRole("button", { name: "Grant" }).click();
  await page.getByLabel("Tool", { exact: true }).fill("public-holidays");
  await page.getByRole("dialog").getByRole("button", { name: "Grant" }).click();
  await expect(card.getByRole("link", { name: "public-holidays" })).toBeVisible();
  await card.getByRole("button", { name: "Revoke" }).click();
  await page.getByRole("button", { name: "Revoke the grant" }).click();
  await expect(card).toContainText("none can use it");
  expect(await page.content()).not.toContain("a very secret value");
  await card.getByRole("button", { name: "Delete" }).click();
  await page.getByRole("button", { name: "Delete the secret" }).click();
  await expect(card).toHaveCount(0);
});

test("a secret shows when a tool last used it", async ({ api, page, open }) => {
  const id = await api.tool("signs", "export async function execute(input, context) { return context.secrets.SIGNING_KEY.length; }", { required_secrets: ["SIGNING_KEY"] });
  const secret = await api.send<{ id: string }>("POST", "/secrets", { name: "SIGNING_KEY", value: "twelve bytes", hosts: [], readable: true });
  await api.send("POST", `/secrets/${secret.id}/grants`, { tool_id: id });
  await open("secrets");
  const card = page.getByRole("listitem").filter({ has: page.getByRole("heading", { name: "SIGNING_KEY" }) });
  await expect(card).toContainText("not lately");
  // The tool is offered soon after the grant.
  await expect.poll(async () => (await api.call("signs", {}))["output"]).toBe(12);
  await page.reload();
  const used = card.locator("dt", { hasText: "Last used" }).locator("xpath=following-sibling::dd[1]");
  await expect(used.locator("time")).toHaveText(/^(now|\d+ s ago)$/);
});

test("a schedule is shown and cancelled", async ({ api, page, open }) => {
  await api.call("schedule_task", { name: "nightly", cron: "0 3 * * *", description: "Clean up", tool: "echo", input: { message: "tick" } });
  await open("schedules");
  const row = page.getByRole("row", { name: /nightly/ });
  await expect(row).toContainText("active");
  await row.getByRole("button", { name: "Cancel" }).click();
  await page.getByRole("button", { name: "Cancel the schedule" }).click();
  await expect(row).toContainText("cancelled");
});

test("a webhook is made, paused and deleted", async ({ page, open }) => {
  await open("webhooks");
  await page.getByRole("button", { name: "New webhook" }).click();
  await page.getByLabel(/^URL/).fill("https://example.com/events");
  await page.getByRole("button", { name: "Create the webhook" }).click();
  const row = page.getByRole("row", { name: /example\.com/ });
  await row.getByRole("button", { name: "Pause" }).click();
  await expect(row).toContainText("paused");
  await row.getByRole("button", { name: "Resume" }).click();
  await expect(row).toContainText("active");
  await row.getByRole("button", { name: "Delete" }).click();
  await page.getByRole("button", { name: "Delete the webhook" }).click();
  await expect(row).toHaveCount(0);
});

test("an entry of working memory is read and deleted", async ({ api, page, open }) => {
  await api.call("save_to_working_memory", { key: "plan", value: { step: "search" } }, { session: "memory-test" });
  await open("memory");
  await page.getByLabel("Search entries").fill("memory-test");
  await page.getByRole("button", { name: /^plan/ }).click();
  await expect(page.getByText('"search"', { exact: true })).toBeVisible();
  await page.getByRole("button", { name: "Delete" }).click();
  await page.getByRole("button", { name: "Delete the entry" }).click();
  await expect(page.getByText("No entry matches")).toBeVisible();
});

test("the health shows the server, the queue and the runners", async ({ page, open }) => {
  await open("health");
  await expect(page.getByRole("region", { name: "Server" })).toContainText("ok");
  await expect(page.getByRole("region", { name: "Queue" })).toContainText("Oldest waits");
  await expect(page.getByRole("region", { name: "Runners" })).toContainText("native tools");
  await expect(page.getByRole("region", { name: "Stored" })).toContainText("default");
});

test("a schedule is made, paused, resumed and fired now", async ({ page, open }) => {
  await open("schedules");
  await page.getByRole("button", { name: "New schedule" }).click();
  await page.getByLabel(/^Name/).fill("digest");
  await page.getByLabel("What it is for").fill("Send the <b>digest</b>");
  await page.getByLabel(/^Times/).fill("0 8 * * MON");
  await page.getByLabel(/^Tool/).fill("echo");
  await page.getByLabel(/^Input/).fill('{"message": "digest"}');
  await page.getByRole("button", { name: "Create the schedule" }).click();
  const row = page.getByRole("row", { name: /digest/ });
  await expect(row).toContainText("active");
  await page.getByRole("button", { name: "Show the next times" }).click();
  await expect(row.locator(".time")).toHaveCount(3);
  await row.getByRole("button", { name: "Pause" }).click();
  await expect(row.getByText("paused", { exact: true })).toBeVisible();
  await row.getByRole("button", { name: "Resume" }).click();
  await expect(row.getByText("active", { exact: true })).toBeVisible();
  await expect(row.locator("time").first()).toContainText(/^in /);
  await row.getByRole("button", { name: "Fire now" }).click();
  await expect(page.getByRole("region", { name: "Output" })).toContainText("digest");
});

test("an agent gets a token with its new key, and its page shows what it did", async ({ api, page, open }) => {
  await open("agents");
  await page.getByRole("button", { name: "New agent" }).click();
  await page.getByLabel("Name", { exact: true }).fill("reporter");
  await page.getByRole("button", { name: "Create the agent" }).click();
  await page.getByRole("button", { name: "Issue a token" }).click();
  const token = await page.getByRole("region", { name: "The token" }).innerText();
  await page.getByRole("button", { name: "I have it" }).click();
  const { Api } = await import("./world");
  const own = new Api(api.url, token.trim());
  await own.call("echo", { message: "a <i>report</i>" }, { session: "reports" });
  await page.getByRole("link", { name: "reporter" }).click();
  await expect(page.getByRole("heading", { level: 1, name: "reporter" })).toBeVisible();
  const calls = page.getByRole("list", { name: "Calls of the agent" });
  await expect(calls).toContainText("a <i>report</i>");
  await own.call("calculator", { expression: "40 + 2" }, { session: "sums" });
  await expect(calls.getByRole("article")).toHaveCount(2);
  await calls.getByRole("link", { name: "sums" }).click();
  await expect(page.getByRole("heading", { name: "Session sums" })).toBeVisible();
});

test("the runners show their load", async ({ page, open }) => {
  await open("health");
  const runners = page.getByRole("region", { name: "Runners" });
  await expect(runners.getByText("ready", { exact: true })).toBeVisible();
  await expect(runners).toContainText(/\d+ of \d+ used/);
  await expect(page.getByRole("region", { name: "Server" })).toContainText("Event lag");
});

test("a runner is drained, and takes calls again", async ({ api, page, open }) => {
  const [only] = await api.send<{ runner_id: string }[]>("GET", "/runners");
  await open("health");
  const runner = page.getByRole("region", { name: "Runners" });
  await expect(runner.getByText("ready", { exact: true })).toBeVisible();
  try {
    await runner.getByRole("button", { name: "Drain" }).click();
    await expect(page.getByRole("dialog")).toContainText("No other runner is ready");
    await page.getByRole("button", { name: "Drain it" }).click();
    await expect(runner.getByText("draining: takes no more calls")).toBeVisible();
    const { request } = await api.call("echo", { message: "waits" }, { wait: 0 });
    const state = async () => (await api.send<{ state: string }>("GET", `/calls/${request}`)).state;
    expect(await state()).toBe("queued");
    await runner.getByRole("button", { name: "Take calls again" }).click();
    await expect(runner.getByText("ready", { exact: true })).toBeVisible();
    await expect.poll(state).toBe("finished");
  } finally {
    // The other tests need it.
    await api.send("POST", `/runners/${only?.runner_id}/drain`, { drain: false });
  }
});

test("selectors are shown for every agent, and removed by their own", async ({ api, page, open }) => {
  const token = await api.agent("follows notes", ["subscriber"]);
  const own = new Api(api.url, token);
  await own.send("POST", "/subscriptions/selectors", { any_tags: ["followed:note"] });
  await open("agents");
  await page.getByRole("link", { name: "follows notes" }).click();
  await expect(page.getByText("followed:note")).toBeVisible();
  await expect(page.getByRole("button", { name: "Remove" })).toHaveCount(0);
  await page.addInitScript((given) => sessionStorage.setItem("rcrt.token", given), token);
  await page.reload();
  await page.getByRole("button", { name: "Remove" }).click();
  await page.getByRole("button", { name: "Remove the selector" }).click();
  await expect(page.getByText("every event that it can see")).toBeVisible();
});
