/**
 * Writes the pictures of docs/images/dashboard: build/dashboard-pictures runs it. The tests leave it
 * out, because fonts differ between machines.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "@playwright/test";
import { fill } from "./screens";
import { expect, test } from "./world";

const folder = process.env["RCRT_PICTURES"] ?? "";

test("the pictures", async ({ api, page, open, browser }) => {
  test.setTimeout(600_000);
  mkdirSync(folder, { recursive: true });
  await page.setViewportSize({ width: Number(process.env["RCRT_PICTURE_WIDTH"] ?? 1280), height: 800 });
  const shoot = async (shown: Page, name: string) => {
    const path = join(folder, `${name}.png`);
    await shown.screenshot({ path });
    // Fewer colours: a third of the bytes.
    spawnSync("pngquant", ["40", "--speed", "1", "--force", "--ext", ".png", "--strip", path]);
  };
  const take = async (screens: Record<string, string>) => {
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      for (const [name, hash] of Object.entries(screens)) {
        await open(hash);
        await page.locator("main h1").waitFor();
        await page.locator("[data-state=live]").waitFor();
        await page.getByText("Checking…").waitFor({ state: "hidden" });
        // The event stream keeps the network busy, so this is a time and not a signal.
        await page.waitForTimeout(1200);
        // The type checker begins some time after the editor is open.
        await page.getByText("Checking…").waitFor({ state: "hidden" });
        await shoot(page, `${name}-${colorScheme}`);
      }
    }
  };
  // While the store is empty.
  await take({ "first-steps": "live" });
  const { live = "live", ...others } = await fill(api);
  // The page stays open, so that its rows have what the event stream said of the calls.
  await page.getByRole("button", { name: "Close" }).click();
  // The numbers of the last hour follow after some seconds.
  await expect(page.locator(".rates dd").first()).toContainText(/\d\d/);
  await take({ live });
  await take(others);
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    await open("tools");
    await page.getByRole("list", { name: "Tools" }).waitFor();
    await page.keyboard.press("Control+k");
    await page.keyboard.type("json");
    await page.getByRole("option", { name: /json-transform/ }).first().waitFor();
    await shoot(page, `palette-${colorScheme}`);
    await page.keyboard.press("Escape");
    const stranger = await browser.newPage({ colorScheme, viewport: page.viewportSize() });
    await stranger.goto(page.url().split("#")[0] ?? "");
    await stranger.getByLabel("Token").waitFor();
    await shoot(stranger, `sign-in-${colorScheme}`);
    await stranger.close();
  }
});
