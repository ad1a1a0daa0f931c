import { expect, test } from "./world";

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
  await page.getByRole("option", { name: /Sessions with/ }).click();
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
