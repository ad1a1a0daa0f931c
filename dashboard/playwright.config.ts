import { defineConfig } from "@playwright/test";

/** The tests, or one of what they leave out: the pictures and the measurement. */
const chosen = process.env["RCRT_PICTURES"] !== undefined ? /pictures\.spec\.ts$/ : process.env["RCRT_DASHBOARD_ROWS"] !== undefined ? /measure\.spec\.ts$/ : /(?<!pictures|measure)\.spec\.ts$/;

/** Run by build/test-dashboard, which sets the program and the browser. */
export default defineConfig({
  testDir: "tests",
  testMatch: chosen,
  globalSetup: "./tests/setup.ts",
  outputDir: process.env["RCRT_TEST_OUTPUT"] ?? "test-results",
  // One server for all: its tests change the same tenant, and the machine is small.
  workers: 1,
  timeout: 120_000,
  expect: { timeout: 60_000 },
  forbidOnly: process.env["CI"] === "true",
  reporter: "list",
  use: {
    actionTimeout: 60_000,
    viewport: { width: 1360, height: 850 },
    launchOptions: {
      executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium",
      args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
    },
  },
});
