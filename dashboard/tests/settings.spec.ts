import { expect, findings, test } from "./world";

test("theme, density and time zone are set and kept", async ({ api, page, open }) => {
  await api.call("echo", { message: "to see a time" }, { session: "settings" });
  await open("settings");
  await page.getByRole("radio", { name: "Dark" }).check();
  await page.getByRole("radio", { name: /^Compact/ }).check();
  await page.getByLabel("Time zone").selectOption("Asia/Tokyo");
  await page.reload();
  await expect(page.locator("html")).toHaveAttribute("data-theme", "dark");
  await expect(page.locator("html")).toHaveAttribute("data-density", "compact");
  await open("live?session=settings");
  await expect(page.locator("a.call time").first()).toHaveAttribute("title", /Asia\/Tokyo$/);
});

test("a new installation offers three first steps, each right there", async ({ api, page, open }) => {
  const suffix = Date.now();
  // The store of the tests has many calls, so the list is shortened on the way.
  await page.route(/\/calls\?/, async (route) => {
    const answer = await route.fetch();
    const list = (await answer.json()) as { calls: unknown[] };
    await route.fulfill({ response: answer, json: { calls: list.calls.slice(0, 1) } });
  });
  await open("live");
  const steps = page.getByRole("region", { name: "Three things to begin with" });
  expect(await findings(page)).toEqual([]);
  await steps.getByLabel("The calculator's expression").fill("6 * 7");
  await steps.getByRole("button", { name: "Call the calculator" }).click();
  await expect(steps.getByRole("status")).toContainText("42");
  await steps.getByRole("button", { name: "Make an agent" }).click();
  await page.getByLabel("Name", { exact: true }).fill(`helper ${suffix}`);
  await page.getByRole("button", { name: "Create the agent" }).click();
  await expect(page.getByRole("region", { name: `The key of helper ${suffix}` })).not.toBeEmpty();
  await page.getByRole("button", { name: "I have it" }).click();
  const name = `greet-${suffix}`;
  await steps.getByLabel("Its name").fill(name);
  await steps.getByRole("button", { name: "Make a tool that greets" }).click();
  await expect(page.getByRole("heading", { level: 1, name })).toBeVisible();
  expect((await api.call(name, { name: "Ada" }))["output"]).toEqual({ text: "Hello, Ada!" });
  await open("live");
  await steps.getByRole("button", { name: "Close" }).click();
  await expect(steps).toHaveCount(0);
});
