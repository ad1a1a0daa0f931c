import type { Page } from "@playwright/test";
import { writeCalls } from "./filling";
import { loadAll, MANY } from "./frames";
import { Server } from "./server";
import { Api, expect, signIn, test as base } from "./world";

base.skip(process.env["RCRT_TEST_PAGE"] !== undefined, "the page comes from another server");

interface Many {
  server: Server;
  api: Api;
  /** Writes finished calls of this session. */
  write: (session: string, many: number) => Promise<void>;
  open: (hash: string) => Promise<void>;
}

/** A server of its own, whose store is filled by SQL. */
const test = base.extend<Omit<Many, "server">, Pick<Many, "server">>({
  server: [
    async ({}, use) => {
      const server = await Server.start();
      await use(server);
      await server.remove();
    },
    { scope: "worker", timeout: 120_000 },
  ],
  api: async ({ server }, use) => await use(new Api(server.url, server.token)),
  write: async ({ server }, use) => await use(async (session, many) => await writeCalls(server.data, many, { tool: "echo", session })),
  open: async ({ page, server }, use) => {
    await signIn(page, server.token);
    await use(async (hash) => {
      await page.goto(`${server.url}/#/${hash}`);
      await expect(page.locator("[data-state=live]")).toBeVisible();
    });
  },
});

const size = (page: Page) => page.locator("li[aria-setsize]").first();
const row = (page: Page, position: number) => page.locator(`li[aria-posinset="${position}"] a.call`);
const scrollTo = async (page: Page, position: number) => {
  await page.locator(".viewport").evaluate((viewport, index) => viewport.scrollTo(0, index * (document.querySelector("li[aria-posinset]")?.clientHeight ?? 0)), position - 1);
  await expect(row(page, position)).toBeVisible();
};

/** How far below the top of the list the row of this link is. */
async function offset(page: Page, href: string | null): Promise<number> {
  const top = async (selector: string) => (await page.locator(selector).boundingBox())?.y ?? Number.NaN;
  return (await top(`a.call[href="${href}"]`)) - (await top(".viewport"));
}

/** The calls of the list from the newest, as a person sees them who scrolls through it. */
async function shown(page: Page): Promise<string[]> {
  const found = await page.evaluate(async () => {
    const viewport = document.querySelector(".viewport");
    const ids = new Map<number, string>();
    const all = () => Number(document.querySelector("li[aria-setsize]")?.getAttribute("aria-setsize"));
    for (let top = 0; ids.size < all(); top += viewport?.clientHeight ?? 0) {
      if (viewport === null || top > viewport.scrollHeight) break;
      viewport.scrollTo(0, top);
      // The scroll's event comes in the same frame, before this.
      await new Promise((resolve) => requestAnimationFrame(resolve));
      for (const item of viewport.querySelectorAll("li[aria-posinset]")) {
        ids.set(Number(item.getAttribute("aria-posinset")), item.querySelector("a")?.getAttribute("href")?.split("/").at(-1) ?? "");
      }
    }
    return [...ids];
  });
  return found.sort(([a], [b]) => a - b).map(([, id]) => id);
}

/** The same as the server lists them. */
async function listed(api: Api, session: string): Promise<string[]> {
  const ids: string[] = [];
  for (let before: string | undefined = ""; before !== undefined; ) {
    const page: { calls: { request: string }[]; next?: string } = await api.send("GET", `/calls?session=${session}&limit=500${before === "" ? "" : `&before=${before}`}`);
    ids.push(...page.calls.map((call) => call.request));
    before = page.next;
  }
  return ids;
}

interface Watched {
  /** The most rows that were in the page. */
  most: number;
  /** The least length of the list. */
  least: number;
  /** Elements that were made for rows. */
  made: number;
  /** Rows whose content changed. */
  redrawn: number;
}

/** Returns what says what happened to the list from now on. */
async function watch(page: Page): Promise<() => Promise<Watched>> {
  await page.evaluate(() => {
    const list = document.querySelector("ul.rows");
    const known = new Set<Node>(list?.children);
    const redrawn = new Set<Node>();
    const seen = { most: known.size, least: Number(list?.querySelector("li")?.getAttribute("aria-setsize")), made: 0, redrawn: 0 };
    const take = (records: MutationRecord[]) => {
      for (const { target, addedNodes } of records) {
        const item = (target instanceof Element ? target : target.parentElement)?.closest("li");
        if (item != null && item !== target) redrawn.add(item);
        for (const node of addedNodes) {
          if (node instanceof Element && node.matches("li") && !known.has(node)) {
            known.add(node);
            seen.made++;
          }
        }
      }
      const items = document.querySelectorAll("ul.rows > li");
      seen.most = Math.max(seen.most, items.length);
      seen.least = Math.min(seen.least, Number(items[0]?.getAttribute("aria-setsize") ?? 0));
      seen.redrawn = redrawn.size;
    };
    const observer = new MutationObserver(take);
    observer.observe(document.querySelector(".live") ?? document, { subtree: true, childList: true, characterData: true, attributes: true });
    Object.assign(window, { watched: () => (take(observer.takeRecords()), seen) });
  });
  return async () => await page.evaluate(() => (window as unknown as { watched: () => Watched }).watched());
}

test("50,000 calls need no more elements than a few", async ({ page, api, write, open }) => {
  test.slow();
  await write("many", MANY);
  await open("live?session=many");
  await expect(page.locator("a.call").first()).toBeVisible();
  const wholeList = await watch(page);
  await loadAll(page);
  await expect(size(page)).toHaveAttribute("aria-setsize", String(MANY));
  const { most, made } = await wholeList();
  expect(most).toBeLessThan(80);
  // Rows that come into view are shown by the elements of those that left.
  expect(made).toBe(0);

  // A step of one row draws one row, and a new call draws its own.
  await scrollTo(page, 25_000);
  const step = await watch(page);
  await page.evaluate(async () => {
    document.querySelector(".viewport")?.scrollBy(0, document.querySelector("li[aria-posinset]")?.clientHeight ?? 0);
    for (let frame = 0; frame < 2; frame++) await new Promise((resolve) => requestAnimationFrame(resolve));
  });
  expect((await step()).redrawn).toBeLessThanOrEqual(2);
  const arrival = await watch(page);
  await api.call("echo", { message: "one more" }, { session: "many" });
  await expect(size(page)).toHaveAttribute("aria-setsize", String(MANY + 1));
  const { redrawn, made: fresh } = await arrival();
  expect(redrawn).toBeLessThanOrEqual(2);
  expect(fresh).toBe(0);

  // The keyboard and readers of screens meet the rows in their order.
  const positions = () => page.locator("li[aria-posinset]").evaluateAll((rows) => rows.map((one) => Number(one.getAttribute("aria-posinset"))));
  await expect.poll(async () => (await positions()).every((position, at, all) => at === 0 || position === (all[at - 1] ?? 0) + 1)).toBe(true);
  await scrollTo(page, 1);
  await page.getByRole("heading", { name: "Live" }).click();
  for (let press = 0; press < 60; press++) await page.keyboard.press("j");
  const focused = page.locator("li[aria-posinset]:focus-within");
  await expect(focused).toHaveAttribute("aria-posinset", "60");
  const { calls } = await api.send<{ calls: { request: string }[] }>("GET", "/calls?session=many&limit=60");
  await expect(focused.locator("a")).toHaveAttribute("href", new RegExp(calls.at(-1)?.request ?? "none"));
  // A row that left the view does not hand its focus to another one.
  await page.locator(".viewport").evaluate((viewport) => viewport.scrollBy(0, 20_000));
  await expect(focused).toHaveCount(0);
});

test("of a burst of 5,000 calls none is lost, and each becomes exact", async ({ page, api, write, open }) => {
  await write("burst", 1);
  await open("live?session=burst");
  await expect(size(page)).toHaveAttribute("aria-setsize", "1");
  const burst = await watch(page);
  await write("burst", 5000);
  await expect(size(page)).toHaveAttribute("aria-setsize", "5001");
  expect((await burst()).most).toBeLessThan(60);
  expect(await shown(page)).toEqual(await listed(api, "burst"));
  // Events say neither who asked nor how long the call took.
  for (const position of [1, 700, 2500, 4999]) {
    await scrollTo(page, position);
    await expect(row(page, position)).toContainText("12 ms");
    await expect(row(page, position)).toContainText("first");
  }
});

test("calls that are too many for a pause are read when it ends", async ({ page, api, write, open }) => {
  await write("pause", 100);
  await open("live?session=pause");
  await expect(size(page)).toHaveAttribute("aria-setsize", "100");
  await page.getByRole("button", { name: "Pause" }).click();
  // Each is two events, and 20,000 events are kept.
  await write("pause", 11_000);
  await expect(page.getByText("Paused, 11,000 new calls")).toBeVisible();
  await expect(size(page)).toHaveAttribute("aria-setsize", "100");
  await page.getByRole("button", { name: "Continue" }).click();
  await expect(size(page)).toHaveAttribute("aria-setsize", "11100");
  const [all, found] = [await listed(api, "pause"), await shown(page)];
  expect(found.length).toBe(all.length);
  expect(found).toEqual(all);
});

test("calls that a sleeping page missed are read when it wakes", async ({ page, api, write, open }) => {
  await write("sleep", 10);
  await open("live?session=sleep");
  await expect(size(page)).toHaveAttribute("aria-setsize", "10");
  // As the browser tells a page that it keeps, and shows again later.
  await page.evaluate(() => dispatchEvent(new PageTransitionEvent("pagehide", { persisted: true })));
  await write("sleep", 3000);
  await page.evaluate(() => dispatchEvent(new PageTransitionEvent("pageshow", { persisted: true })));
  await expect(size(page)).toHaveAttribute("aria-setsize", "3010");
  expect(await shown(page)).toEqual(await listed(api, "sleep"));
});

test("a new call neither moves the rows that are read nor drops earlier ones", async ({ page, api, write, open }) => {
  await write("earlier", 22_500);
  await open("live?session=earlier");
  await loadAll(page, 22_500);
  await scrollTo(page, 22_400);
  const id = await row(page, 22_400).getAttribute("href");
  const before = await offset(page, id);
  await api.call("echo", { message: "new" }, { session: "earlier" });
  await expect(size(page)).toHaveAttribute("aria-setsize", "22501");
  await expect(row(page, 22_401)).toHaveAttribute("href", String(id));
  expect(await offset(page, id)).toBe(before);
  // Nor when the newest calls are looked at.
  await scrollTo(page, 1);
  await api.call("echo", { message: "newer" }, { session: "earlier" });
  await expect(size(page)).toHaveAttribute("aria-setsize", "22502");
});

test("a filtered list under load goes on where it is", async ({ page, api, write, open }) => {
  const { calls } = await api.send<{ calls: { agent_id: string }[] }>("GET", "/calls?limit=1");
  await write("filtered", 600);
  // Who asked is not in an event, so that the server filters.
  await open(`live?session=filtered&agent_id=${calls[0]?.agent_id}`);
  await loadAll(page, 600);
  await scrollTo(page, 300);
  const id = await row(page, 300).getAttribute("href");
  const before = await offset(page, id);
  const load = await watch(page);
  // More than a page, so that the newest page and the list have no call in common.
  await write("filtered", 1500);
  await expect(size(page)).toHaveAttribute("aria-setsize", "2100");
  const { least, made } = await load();
  expect(least).toBe(600);
  expect(made).toBe(0);
  expect(await offset(page, id)).toBe(before);
  expect(await shown(page)).toEqual(await listed(api, "filtered"));
});

test("rare calls are found by looking further back", async ({ page, write, open }) => {
  await write("rare", 2);
  // A page of the server examines 20,000 calls.
  await write("frequent", 41_000);
  await write("rare", 1);
  await open("live?session=rare");
  const rows = page.locator("a.call");
  const further = page.getByRole("button", { name: "Look further back" });
  await expect(further).toBeVisible();
  await expect(rows).toHaveCount(1);
  await further.click();
  await expect(rows).toHaveCount(3);
});
