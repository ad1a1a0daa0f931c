import { spawnSync } from "node:child_process";
import { expect, test as base } from "@playwright/test";
import { Api, expect as expectPage, signIn, test } from "./world";

const url = () => process.env["RCRT_TEST_PAGE"] ?? process.env["RCRT_TEST_URL"] ?? "";

base("a person signs in with a token, and signs out", async ({ page }) => {
  await page.goto(url());
  await page.getByLabel("Token").fill("not a token");
  await page.getByRole("button", { name: "Sign in" }).click();
  await expect(page.getByRole("alert")).toContainText("This is not a token");
  const own = process.env["RCRT_TEST_TOKEN"] ?? "";
  // Of another server: the signature is wrong.
  await page.getByLabel("Token").fill(`${own.split(".").slice(0, 2).join(".")}.AAAA`);
  await page.getByRole("button", { name: "Sign in" }).click();
  await expect(page.getByRole("alert")).toContainText("does not accept this token");
  await page.getByLabel("Token").fill(own);
  await page.getByRole("button", { name: "Sign in" }).click();
  await expect(page.getByRole("heading", { name: "Live" })).toBeVisible();
  // The token is only in this tab, and not in the address.
  expect(page.url()).not.toContain(own.slice(0, 10));
  expect(await page.evaluate(() => JSON.stringify(localStorage))).not.toContain(own.slice(0, 10));
  await page.getByRole("button", { name: "Sign out" }).click();
  await expect(page.getByLabel("Token")).toBeVisible();
  expect(await page.evaluate(() => sessionStorage.length)).toBe(0);
});

base("a link signs in once, and leaves no ticket in the address", async ({ page, browser }) => {
  const api = new Api(process.env["RCRT_TEST_URL"] ?? "", process.env["RCRT_TEST_TOKEN"] ?? "");
  const { ticket } = await api.send<{ ticket: string }>("POST", "/auth/ticket");
  const link = `${url().replace(/\/$/, "")}/#/sign-in/${ticket}`;
  await page.goto(link);
  await expect(page.getByRole("heading", { name: "Live" })).toBeVisible();
  expect(page.url()).not.toContain(ticket.slice(0, 20));
  // Its own token, not the one that asked for the link.
  const token = await page.evaluate(() => sessionStorage.getItem("rcrt.token"));
  expect(token).not.toBe(api.token);
  const other = await browser.newPage();
  await other.goto(link);
  await expect(other.getByRole("alert")).toContainText("already used");
  await expect(other.getByLabel("Token")).toBeVisible();
  await other.close();
  // In a tab that is signed in, a wrong link changes nothing.
  await page.goto(`${url().replace(/\/$/, "")}/#/sign-in/nonsense`);
  await expect(page.getByRole("alert")).toContainText("cannot be used");
  await page.getByRole("link", { name: "Go on as before" }).click();
  await expect(page.getByRole("heading", { name: "Live" })).toBeVisible();
});

base("rcrt open prints a link that signs in", async ({ page }) => {
  base.skip(process.env["RCRT_TEST_PAGE"] !== undefined, "the page comes from another server");
  const { stdout } = spawnSync(process.env["RCRT_BIN"] ?? "", ["open", "--print", "--server", process.env["RCRT_TEST_URL"] ?? "", "--token", process.env["RCRT_TEST_TOKEN"] ?? ""], { encoding: "utf8" });
  await page.goto(stdout.trim());
  await expect(page.getByRole("heading", { name: "Live" })).toBeVisible();
});

base("a revoked token ends the session", async ({ page }) => {
  const api = new Api(process.env["RCRT_TEST_URL"] ?? "", process.env["RCRT_TEST_TOKEN"] ?? "");
  const own = new Api(api.url, await api.agent("soon revoked", ["emitter", "subscriber"]));
  await signIn(page, own.token);
  await page.goto(`${url()}/#/records`);
  await expect(page.getByRole("heading", { name: "Records" })).toBeVisible();
  await own.send("POST", "/auth/revoke", {});
  // The event stream ends, so the page notices by itself.
  await expect(page.getByRole("status").filter({ hasText: "expired or was revoked" })).toBeVisible();
});

test("only what a token allows is offered", async ({ api, page, open }) => {
  const own = new Api(api.url, await api.agent("only calls", ["caller"]));
  await signIn(page, own.token);
  await open("live");
  const navigation = page.getByRole("navigation", { name: "Screens" });
  await expectPage(navigation.getByRole("link", { name: "Live" })).toBeVisible();
  for (const name of ["Records", "Agents", "Secrets", "Webhooks", "Schedules", "Working memory", "Connections"]) {
    await expectPage(navigation.getByRole("link", { name, exact: true })).toHaveCount(0);
  }
  // Calls of others are not shown, its own are.
  await api.call("echo", { message: "of another agent" });
  const call = await own.call("echo", { message: "its own" });
  const rows = page.locator("a.call");
  await expectPage(rows).toHaveCount(1);
  await rows.first().click();
  await expectPage(page.getByRole("region", { name: "Output" })).toContainText("its own");
  expectPage(page.url()).toContain(call.request);
  await open("secrets");
  await expectPage(page.getByRole("heading", { name: "No such screen" })).toBeVisible();
  await open("tools/echo");
  await page.getByLabel("message").fill("from the form");
  await page.getByRole("button", { name: "Run the tool" }).click();
  await expectPage(page.getByRole("region", { name: "Result" })).toContainText("from the form");
});

test("a token that only reads is not offered to write", async ({ api, page, open }) => {
  await signIn(page, await api.agent("only reads", ["subscriber"]));
  const id = await api.record({ title: "Read only", context: {} });
  await open(`records/${id}`);
  await expectPage(page.getByRole("heading", { name: "Read only" })).toBeVisible();
  await expectPage(page.getByRole("button", { name: /Edit|Delete/ })).toHaveCount(0);
  await open("records");
  await expectPage(page.getByRole("button", { name: "New record" })).toHaveCount(0);
  await open("tools/echo");
  await expectPage(page.getByRole("tab", { name: "Definition" })).toBeVisible();
  await expectPage(page.getByRole("tab", { name: "Run" })).toHaveCount(0);
});
