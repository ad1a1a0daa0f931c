import { fill } from "./screens";
import { expect, findings, test } from "./world";

let screens: Record<string, string> = {};

/** What a button opens, by its screen. */
const DIALOGS: [screen: string, button: string][] = [
  ["schedules", "New schedule"],
  ["records", "New record"],
  ["connections", "Add a server"],
  ["agents", "New agent"],
  ["secrets", "New secret"],
  ["webhooks", "New webhook"],
  ["tools/openrouter", "Enter OPENROUTER_API_KEY"],
];

test.describe("every screen", () => {
  test.beforeAll(async () => {
    const { Api } = await import("./world");
    const api = new Api(process.env["RCRT_TEST_URL"] ?? "", process.env["RCRT_TEST_TOKEN"] ?? "");
    screens = await fill(api);
  });

  for (const theme of ["light", "dark"] as const) {
    test(`has no findings of axe in the ${theme} theme`, async ({ page, open }) => {
      test.slow();
      const found: string[] = [];
      await page.emulateMedia({ colorScheme: theme, reducedMotion: "reduce" });
      for (const [name, hash] of Object.entries(screens)) {
        await open(hash);
        await expect(page.locator("main h1")).toBeVisible();
        await expect(page.getByText(/^Loading/)).toHaveCount(0);
        found.push(...(await findings(page)).map((finding) => `${name}: ${finding}`));
      }
      await page.keyboard.press("Control+k");
      await expect(page.getByRole("dialog")).toBeVisible();
      found.push(...(await findings(page)).map((finding) => `palette: ${finding}`));
      expect(found).toEqual([]);
    });
  }

  for (const theme of ["light", "dark"] as const) {
    test(`has no findings of axe in its dialog, where nothing is, and at a wrong address, in the ${theme} theme`, async ({ page, open }) => {
      test.slow();
      const found: string[] = [];
      const check = async (name: string) => found.push(...(await findings(page)).map((finding) => `${name}: ${finding}`));
      await page.emulateMedia({ colorScheme: theme, reducedMotion: "reduce" });
      for (const [screen, button] of DIALOGS) {
        await open(screen);
        await page.getByRole("button", { name: button, exact: true }).click();
        await expect(page.getByRole("dialog")).toBeVisible();
        await check(`${screen}, ${button}`);
        await page.keyboard.press("Escape");
      }
      await page.route(/[?&]schema_name=(schedule|memory\.entry|mcp\.server|a2a\.agent)\.v1/, (route) => route.fulfill({ json: [] }));
      for (const [screen, title] of [["schedules", "No schedules"], ["memory", "Working memory is empty"], ["connections", "No MCP servers"], ["records?schema=nothing.v1", "No record matches"], ["sessions/nobody", "No calls"]] as const) {
        await open(screen);
        await expect(page.getByText(title, { exact: true })).toBeVisible();
        await check(`${screen}: ${title}`);
      }
      for (const address of ["nonsense", "tools/no-such-tool", "records/no-such-record"]) {
        await open(address);
        await expect(page.locator("main h1")).toBeVisible();
        await expect(page.getByText(/^Loading/)).toHaveCount(0);
        await check(address);
      }
      expect(found).toEqual([]);
    });
  }

  for (const width of [360, 3840]) {
    test(`fits into ${width} pixels`, async ({ page, open }) => {
      const found: string[] = [];
      await page.setViewportSize({ width, height: 800 });
      for (const [name, hash] of Object.entries(screens)) {
        await open(hash);
        await expect(page.locator("main h1")).toBeVisible();
        await expect(page.getByText(/^Loading/)).toHaveCount(0);
        const wide = await page.evaluate(() => {
          const main = document.querySelector("main");
          return Math.max(document.documentElement.scrollWidth - innerWidth, (main?.scrollWidth ?? 0) - (main?.clientWidth ?? 0));
        });
        if (wide > 0) found.push(`${name} is ${wide} pixels too wide`);
      }
      expect(found).toEqual([]);
    });
  }
});

test("the page of the sign-in has no findings", async ({ browser }) => {
  for (const colorScheme of ["light", "dark"] as const) {
    const page = await browser.newPage({ colorScheme });
    await page.goto(process.env["RCRT_TEST_PAGE"] ?? process.env["RCRT_TEST_URL"] ?? "");
    await expect(page.getByLabel("Token")).toBeVisible();
    expect(await findings(page)).toEqual([]);
    await page.close();
  }
});
