/**
 * Measures the dashboard for `make bench ARGS="--only dashboard"`, which reads the rows of
 * RCRT_DASHBOARD_ROWS. The tests leave it out.
 */
import { writeFileSync } from "node:fs";
import { createServer, type Server as WebServer } from "node:http";
import type { Browser, Page } from "@playwright/test";
import { writeCalls } from "./filling";
import { loadAll, MANY, meterOf, scroll } from "./frames";
import { Server } from "./server";
import { expect, signIn, test } from "./world";

const SECTION = "dashboard";
const TO = "an empty page";
/** What a display allows for one frame. */
const FRAME_MS = 16;
const FIRST_VIEW_KB = 150;
/** Each call is two events. */
const BURST = 5000;
const EVENTS = 1000;
const ROUNDS = Number(process.env["RCRT_DASHBOARD_ROUNDS"] ?? 20);

interface Row {
  section: string;
  name: string;
  value: number;
  unit: string;
  ratio?: { value: number; to: string };
  target?: string;
  holds?: boolean;
  note?: string;
}

const median = (values: number[]) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;

/** The smallest page with a heading, from this machine: what the browser itself takes. */
async function emptyPage(): Promise<{ server: WebServer; url: string }> {
  const server = createServer((_, answer) => answer.setHeader("content-type", "text/html").end("<!doctype html><title>Empty</title><main><h1>Empty</h1></main>"));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  return { server, url: `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}/` };
}

/** Milliseconds from the start of the navigation until this is painted, and the bytes on the wire. */
async function view(page: Page, url: string, what: string): Promise<{ ms: number; bytes: number }> {
  const wire = await page.context().newCDPSession(page);
  await wire.send("Network.enable");
  // Answers of the API depend on what is stored. Those of the shared worker are not of this page.
  const isFile = new Map<string, boolean>();
  let bytes = 0;
  wire.on("Network.responseReceived", ({ requestId, response }) => isFile.set(requestId, /\/($|assets\/|favicon)/.test(new URL(response.url).pathname)));
  wire.on("Network.loadingFinished", ({ requestId, encodedDataLength }) => {
    if (isFile.get(requestId)) bytes += encodedDataLength;
  });
  await page.goto(url);
  const ms = await page.evaluate(async (selector) => {
    while (document.querySelector(selector) === null) await new Promise((resolve) => requestAnimationFrame(resolve));
    // The frame in which it is painted, and the one after it.
    for (let frame = 0; frame < 2; frame++) await new Promise((resolve) => requestAnimationFrame(resolve));
    return performance.now();
  }, what);
  await page.waitForLoadState("load");
  await wire.detach();
  return { ms, bytes };
}

/** A visitor without a cache, signed in. */
async function fresh<T>(browser: Browser, token: string, visit: (page: Page) => Promise<T>): Promise<T> {
  const page = await browser.newPage();
  try {
    await signIn(page, token);
    return await visit(page);
  } finally {
    await page.close();
  }
}

/** Frames that scroll through many calls, in ms, and the events of a burst that a second takes. */
async function manyCalls(browser: Browser): Promise<{ frames: number[]; events: number }> {
  const server = await Server.start();
  try {
    const write = async (session: string, many: number) => await writeCalls(server.data, many, { tool: "echo", session });
    await write("many", MANY);
    const frames = await fresh(browser, server.token, async (page) => {
      await page.goto(`${server.url}/#/live?session=many`);
      await expect(page.locator("a.call").first()).toBeVisible();
      await loadAll(page);
      return await scroll(page);
    });
    await write("burst", 1);
    const events = await fresh(browser, server.token, async (page) => {
      await page.goto(`${server.url}/#/live?session=burst`);
      await expect(page.locator("[data-state=live]")).toBeVisible();
      await expect(page.locator("a.call")).toHaveCount(1);
      const spent = await meterOf(page);
      const before = await spent();
      await write("burst", BURST);
      await expect(page.locator("li[aria-setsize]").first()).toHaveAttribute("aria-setsize", String(BURST + 1));
      return (2 * BURST * 1000) / ((await spent()) - before);
    });
    return { frames, events };
  } finally {
    await server.remove();
  }
}

test("measure", async ({ api, browser }) => {
  test.setTimeout(900_000);
  const rows: Row[] = [];
  const { server, url: empty } = await emptyPage();
  const live = `${process.env["RCRT_TEST_PAGE"] ?? api.url}/#/live`;
  await api.call("calculator", { expression: "6 * 7" });
  const found: Record<"empty" | "cold" | "warm" | "editor", number[]> = { empty: [], cold: [], warm: [], editor: [] };
  const sizes = { cold: 0, editor: 0 };
  for (let round = 0; round < ROUNDS; round++) {
    found.empty.push(await fresh(browser, api.token, async (page) => (await view(page, empty, "h1")).ms));
    await fresh(browser, api.token, async (page) => {
      const cold = await view(page, live, "a.call");
      found.cold.push(cold.ms);
      sizes.cold = cold.bytes;
      // Without the page that is open: a changed fragment alone loads nothing.
      await page.goto("about:blank");
      found.warm.push((await view(page, live, "a.call")).ms);
      await page.goto("about:blank");
      const editor = await view(page, live.replace("#/live", "#/editor/json-transform"), ".cm-content, [role=tablist]");
      found.editor.push(editor.ms);
      sizes.editor = editor.bytes;
    });
  }
  server.close();
  const floor = median(found.empty);
  const timed = (name: string, times: number[], note: string): Row => ({ section: SECTION, name, value: median(times), unit: "ms", ratio: { value: median(times) / floor, to: TO }, note });
  rows.push({ section: SECTION, name: TO, value: floor, unit: "ms" });
  rows.push(timed("time to first view", found.cold, "Live with its calls, without a cache; p50"));
  rows.push(timed("time to first view, with a cache", found.warm, "p50"));
  rows.push(timed("time to the editor", found.editor, "with the first view's files in the cache; p50"));
  rows.push({ section: SECTION, name: "first view, transferred", value: sizes.cold / 1000, unit: "kB", target: `less than ${FIRST_VIEW_KB} kB`, holds: sizes.cold / 1000 < FIRST_VIEW_KB, note: "files with their headers, without the API's answers and the worker of the event stream (12 kB)" });
  rows.push({ section: SECTION, name: "editor, transferred", value: sizes.editor / 1000, unit: "kB", note: "beyond the first view; the type checker follows in a worker" });
  const { frames, events } = await manyCalls(browser);
  const at = (share: number) => frames[Math.floor(frames.length * share)] ?? Number.NaN;
  for (const [name, ms] of [["p50", at(0.5)], ["p99", at(0.99)]] as const) {
    rows.push({ section: SECTION, name: `a frame while ${MANY.toLocaleString("en")} calls scroll, ${name}`, value: ms, unit: "ms", target: `less than ${FRAME_MS} ms`, holds: ms < FRAME_MS, note: "processor time of the page's main thread" });
  }
  rows.push({ section: SECTION, name: "events that Live takes in a second", value: events, unit: "/s", target: `more than ${EVENTS.toLocaleString("en")}/s`, holds: events > EVENTS, note: "a burst of 5,000 calls, by the processor time of the page's main thread" });
  writeFileSync(process.env["RCRT_DASHBOARD_ROWS"] ?? "", JSON.stringify(rows));
});
