import { expect, test } from "./world";

test("calls appear as they happen, and one is opened with the keyboard", async ({ api, page, open }) => {
  await open("live?session=live-1");
  await expect(page.getByText("No call matches these filters")).toBeVisible();
  await api.call("echo", { message: "first" }, { session: "live-1" });
  const rows = page.locator("a.call");
  await expect(rows).toHaveCount(1);
  await expect(rows.first()).toContainText("success");
  await api.call("calculator", { expression: "1/0" }, { session: "live-1" });
  await expect(rows.first()).toContainText("ExecutionFailed");
  await page.getByRole("heading", { name: "Live" }).click();
  await page.keyboard.press("j");
  await expect(rows.first()).toBeFocused();
  await page.keyboard.press("j");
  await expect(rows.nth(1)).toBeFocused();
  await page.keyboard.press("k");
  await page.keyboard.press("Enter");
  await expect(page.getByRole("heading", { name: /ExecutionFailed/ })).toContainText("Division by zero");
});

test("filters are in the address and narrow the list", async ({ api, page, open }) => {
  await api.call("echo", { message: "a needle in the hay" }, { session: "filters" });
  await api.call("calculator", { expression: "2+2" }, { session: "filters" });
  await api.call("calculator", { expression: "1/0" }, { session: "filters" });
  await open("live?session=filters");
  const rows = page.locator("a.call");
  await expect(rows).toHaveCount(3);
  await page.getByLabel("State").selectOption("ExecutionFailed");
  await expect(rows).toHaveCount(1);
  await expect(page).toHaveURL(/error_code=ExecutionFailed/);
  await page.getByLabel("State").selectOption("");
  await page.keyboard.press("Escape");
  await page.getByRole("heading", { name: "Live" }).click();
  await page.keyboard.press("/");
  await page.keyboard.type("needle");
  await expect(rows).toHaveCount(1);
  await expect(rows.first()).toContainText("echo");
  await page.getByLabel("Words").fill("");
  await page.getByLabel("Tool", { exact: true }).fill("calculator");
  await expect(rows).toHaveCount(2);
});

test("a call with a long input is readable on a small screen", async ({ api, page, open }) => {
  await page.setViewportSize({ width: 360, height: 800 });
  await open("live?session=small");
  await expect(page.getByText("No call matches these filters")).toBeVisible();
  await api.call("echo", { message: "long ".repeat(40) }, { session: "small" });
  const row = page.locator("a.call");
  await expect(row).toContainText("long long");
  const width = async (part: string) => (await row.locator(part).boundingBox())?.width ?? 0;
  expect(await width(".tool")).toBeGreaterThan(100);
  expect(await width("time")).toBeGreaterThan(50);
  const overlap = await row.evaluate((call) => (call.querySelector("time")?.getBoundingClientRect().right ?? 0) - (call.querySelector(".rest")?.getBoundingClientRect().left ?? 0));
  expect(overlap).toBeLessThanOrEqual(0);
});

test("calls are found by the tag of their request and by time", async ({ api, page, open }) => {
  const request = { title: "Call echo", schema_name: "tool.request.v1", tags: ["tool:request", "order:7"], context: { tool: "echo", input: { message: "tagged" }, session: "tagged" } };
  const id = await api.record(request);
  await api.call("echo", { message: "without" }, { session: "tagged" });
  await open("live?session=tagged");
  const rows = page.locator("a.call");
  await expect(rows).toHaveCount(2);
  await page.getByLabel("Tag", { exact: true }).fill("order:7");
  await expect(rows).toHaveCount(1);
  await expect(rows.first()).toHaveAttribute("href", new RegExp(id));
  await page.getByLabel("Time", { exact: true }).selectOption("last hour");
  await expect(page).toHaveURL(/since=/);
  await expect(rows).toHaveCount(1);
  await page.getByLabel("to", { exact: true }).fill("2020-01-01T00:00");
  await expect(page.getByText("No call matches these filters")).toBeVisible();
});

test("a pause holds new calls back until it ends, and counts those that match", async ({ api, page, open }) => {
  // By the events, and by the server: an event does not say who asked.
  const { calls } = await api.send<{ calls: { agent_id: string }[] }>("GET", "/calls?limit=1");
  for (const [session, filter] of [["pause-1", ""], ["pause-2", `&agent_id=${calls[0]?.agent_id}`]]) {
    await open(`live?session=${session}${filter}`);
    await expect(page.getByText("No call matches")).toBeVisible();
    await page.getByRole("button", { name: "Pause" }).click();
    await api.call("echo", { message: "of another session" }, { session: "elsewhere" });
    await api.call("echo", { message: "during the pause" }, { session });
    await api.call("echo", { message: "also" }, { session });
    await expect(page.getByText("Paused, 2 new calls", { exact: true })).toBeVisible();
    await expect(page.locator("a.call")).toHaveCount(0);
    await page.getByRole("button", { name: "Continue" }).click();
    await expect(page.locator("a.call")).toHaveCount(2);
  }
});

test("calls come into a list of running calls and leave it", async ({ api, page, open }) => {
  const source = "export async function execute() { for (;;) await new Promise((resolve) => setTimeout(resolve, 50)); }";
  await api.tool("endless", source, { limits: { timeout_ms: 300_000 } });
  await open("live?tool=endless&state=running");
  await expect(page.getByText("No call matches")).toBeVisible();
  const first = await api.call("endless", {}, { wait: 0 });
  const second = await api.call("endless", {}, { wait: 0 });
  const row = ({ request }: { request: string }) => page.locator(`a.call[href$="${request}"]`);
  for (const call of [first, second]) await expect(row(call)).toContainText("running");
  await api.send("POST", `/calls/${first.request}/cancel`);
  await expect(row(first)).toHaveCount(0);
  await expect(row(second)).toContainText("running");
  await api.send("POST", `/calls/${second.request}/cancel`);
  await expect(page.getByText("No call matches")).toBeVisible();
});

test("all tabs share one event stream", async ({ api, page, open, context }) => {
  const streams = async () => {
    const answer = await fetch(`${api.url}/metrics`, { headers: { authorization: `Bearer ${api.token}` } });
    return Number(/^rcrt_event_streams (\d+)/m.exec(await answer.text())?.[1]);
  };
  await expect.poll(streams).toBe(0);
  await open("live?session=tabs");
  const other = await context.newPage();
  await other.addInitScript((token) => sessionStorage.setItem("rcrt.token", token), api.token);
  await other.goto(page.url());
  for (const one of [page, other]) await expect(one.locator("[data-state=live]")).toBeVisible();
  expect(await streams()).toBe(1);
  await api.call("echo", { message: "for both" }, { session: "tabs" });
  for (const one of [page, other]) await expect(one.locator("a.call")).toHaveCount(1);
  // The first tab's end does not end the stream of the other.
  await page.close();
  await api.call("echo", { message: "for the other" }, { session: "tabs" });
  await expect(other.locator("a.call")).toHaveCount(2);
});

test("sessions are listed with the newest first, and one is opened with the keyboard", async ({ api, page, open }) => {
  await api.call("echo", { message: "one" }, { session: "listed-1" });
  await api.call("echo", { message: "two" }, { session: "listed-2" });
  await api.call("calculator", { expression: "1/0" }, { session: "listed-1" });
  await open("sessions?q=listed-");
  const rows = page.getByRole("list", { name: "Sessions" }).getByRole("link");
  await expect(rows).toHaveCount(2);
  await expect(rows.first()).toContainText("listed-1");
  await expect(rows.first()).toContainText("calculator, echo");
  await expect(rows.first()).toContainText("2 calls");
  await expect(rows.first()).toContainText("1 failed");
  // A new call appears by itself.
  await api.call("echo", { message: "three" }, { session: "listed-2" });
  await expect(rows.first()).toContainText("listed-2");
  await page.getByRole("heading", { name: "Sessions" }).click();
  await page.keyboard.press("/");
  await page.keyboard.type("1");
  await expect(rows).toHaveCount(1);
  await page.getByRole("heading", { name: "Sessions" }).click();
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await expect(page.getByRole("heading", { name: "Session listed-1" })).toBeVisible();
  await open("sessions?q=no-such-session");
  await expect(page.getByText("No session has this name")).toBeVisible();
});

test("a session is read from its first call to its last", async ({ api, page, open }) => {
  await api.call("echo", { message: "what is two plus two" }, { session: "whole" });
  await api.call("calculator", { expression: "1/0" }, { session: "whole" });
  await open("live?session=whole");
  await page.getByRole("link", { name: /The whole session/ }).click();
  const calls = page.getByRole("list", { name: "Calls of the session" }).getByRole("article");
  await expect(calls).toHaveCount(2);
  await expect(calls.first()).toContainText("what is two plus two");
  await expect(calls.nth(1)).toContainText("Division by zero");
  await api.call("calculator", { expression: "2+2" }, { session: "whole" });
  await expect(calls.nth(2)).toContainText("4");
  await calls.nth(2).getByRole("link", { name: "calculator" }).click();
  await expect(page.getByRole("link", { name: "whole" })).toBeVisible();
});
