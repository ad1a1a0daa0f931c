import type { Locator, Page } from "@playwright/test";
import { expect, test } from "./world";

/** Goes on with the key until the focus is there, as a person does who sees where it is. */
async function reach(page: Page, target: Locator, key = "Tab"): Promise<void> {
  await expect(target).toBeVisible();
  for (let press = 0; press < 100; press++) {
    if (await target.evaluate((element) => element === document.activeElement)) return;
    await page.keyboard.press(key);
  }
  await expect(target).toBeFocused();
}

test("everything is reached with the keyboard", async ({ page, open }) => {
  await open("live");
  await expect(page.getByRole("heading", { name: "Live" })).toBeVisible();
  await page.keyboard.press("?");
  await expect(page.getByRole("dialog", { name: "Keyboard" })).toBeVisible();
  await page.keyboard.press("Escape");
  await expect(page.getByRole("dialog")).toHaveCount(0);
  await page.keyboard.press("g");
  await page.keyboard.press("h");
  await expect(page.getByRole("heading", { name: "Health" })).toBeVisible();
  // This screen has no search of its own.
  await page.keyboard.press("/");
  await page.keyboard.type("chat");
  const sessions = page.getByRole("option", { name: /Sessions with/ });
  await expect(sessions).toBeVisible();
  for (let press = 0; press < 20 && (await sessions.getAttribute("aria-selected")) !== "true"; press++) await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await expect(page.getByRole("heading", { name: "Sessions" })).toBeVisible();
  await page.keyboard.press("Control+k");
  await page.keyboard.type("calcul");
  await expect(page.getByRole("option", { name: /calculator/ })).toBeVisible();
  await page.keyboard.press("Enter");
  await expect(page.getByRole("heading", { name: "calculator" })).toBeVisible();
  await page.keyboard.press("Control+k");
  await page.keyboard.type("dark");
  await page.keyboard.press("Enter");
  await expect(page.locator("html")).toHaveAttribute("data-theme", "dark");
  await page.reload();
  await expect(page.locator("html")).toHaveAttribute("data-theme", "dark");
});

test("a tool is found, run and its call looked at without a mouse", async ({ page, open }) => {
  await open("tools");
  await expect(page.getByRole("list", { name: "Tools" })).toBeVisible();
  await page.keyboard.press("/");
  await page.keyboard.type("calculator");
  const row = page.getByRole("link", { name: /^calculator/ });
  await expect(page.getByRole("list", { name: "Tools" }).getByRole("link").first()).toHaveText(/calculator/);
  await reach(page, row);
  await page.keyboard.press("Enter");
  await reach(page, page.getByLabel("expression"));
  await page.keyboard.type("2**10");
  await reach(page, page.getByRole("button", { name: "Run the tool" }));
  await page.keyboard.press("Enter");
  await expect(page.getByRole("region", { name: "Result" })).toContainText("1024");
  // The tabs are one stop, and arrows go from one to the next.
  await reach(page, page.getByRole("tab", { name: "Run" }), "Shift+Tab");
  await reach(page, page.getByRole("tab", { name: "Calls" }), "ArrowRight");
  await page.keyboard.press("Enter");
  await expect(page.getByRole("region", { name: "Callers" })).toBeVisible();
  await page.keyboard.press("Escape");
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await expect(page).toHaveURL(/#\/calls\//);
  await expect(page.getByRole("heading", { name: "calculator" })).toBeVisible();
});

test("a record is written, changed and deleted without a mouse", async ({ page, open }) => {
  await open("records?schema=keyboard.v1");
  await expect(page.getByText("No record matches")).toBeVisible();
  const press = async (name: string) => {
    await reach(page, page.getByRole("button", { name, exact: true }));
    await page.keyboard.press("Enter");
  };
  await press("New record");
  const dialog = page.getByRole("dialog");
  await reach(page, dialog.getByLabel("Title"));
  await page.keyboard.type("Typed");
  await reach(page, dialog.getByLabel("Schema name", { exact: false }));
  await page.keyboard.type("keyboard.v1");
  await reach(page, dialog.getByLabel("Context"));
  await page.keyboard.press("Control+a");
  await page.keyboard.type('{"by": "hand"}');
  await press("Create the record");
  await expect(page.getByRole("heading", { name: "Typed" })).toBeVisible();
  await press("Edit");
  await reach(page, page.getByLabel("Title"));
  await page.keyboard.press("End");
  await page.keyboard.type(" twice");
  await press("Save");
  await expect(page.getByRole("heading", { name: "Typed twice" })).toBeVisible();
  await press("Delete");
  await press("Delete the record");
  await expect(page.getByRole("heading", { name: "Records" })).toBeVisible();
});
