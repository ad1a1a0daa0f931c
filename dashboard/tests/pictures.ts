/**
 * Writes the pictures of docs/images/dashboard: build/dashboard-pictures runs it. It is no test,
 * because fonts differ between machines.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { chromium } from "@playwright/test";
import config from "../playwright.config";
import { fill } from "./screens";
import { Server } from "./server";
import { Api, signIn } from "./world";

/** The screens of the pages in docs/; the rest is only looked at. */
const KEPT = ["live", "call", "failed-call", "tools", "tool", "definition", "records", "record", "history", "memory", "schedules", "agents", "secrets", "health"];

async function main(folder: string): Promise<void> {
  const given = process.env["RCRT_TEST_URL"];
  const server = given === undefined ? await Server.start() : undefined;
  const api = new Api(server?.url ?? given ?? "", server?.token ?? process.env["RCRT_TEST_TOKEN"] ?? "");
  const browser = await chromium.launch(config.use?.launchOptions ?? {});
  try {
    const screens = await fill(api);
    mkdirSync(folder, { recursive: true });
    for (const colorScheme of ["light", "dark"] as const) {
      const page = await browser.newPage({ colorScheme, viewport: { width: 1280, height: 800 }, reducedMotion: "reduce" });
      await signIn(page, api.token);
      for (const name of process.env["RCRT_ALL_PICTURES"] === undefined ? KEPT : Object.keys(screens)) {
        await page.goto(`${process.env["RCRT_TEST_PAGE"] ?? api.url}/#/${screens[name]}`);
        await page.locator("main h1").waitFor();
        await page.locator("[data-state=live]").waitFor();
        await page.waitForLoadState("networkidle", { timeout: 3000 }).catch(() => undefined);
        const path = join(folder, `${name}-${colorScheme}.png`);
        await page.screenshot({ path });
        // Fewer colours: a third of the bytes.
        spawnSync("pngquant", ["--force", "--ext", ".png", "--strip", path]);
      }
      await page.close();
    }
  } finally {
    await browser.close();
    await server?.remove();
  }
}

await main(process.argv[2] ?? "pictures");
