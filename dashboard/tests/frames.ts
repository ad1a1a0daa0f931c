/** A list of 50,000 calls, and what a frame costs while it scrolls. */
import type { Page } from "@playwright/test";

export const MANY = 50_000;

/** Scrolls to the end, which loads page after page, and back. */
export async function loadAll(page: Page, many = MANY): Promise<void> {
  await page.evaluate(async (all) => {
    const viewport = document.querySelector(".viewport");
    const size = () => Number(document.querySelector("li[aria-setsize]")?.getAttribute("aria-setsize"));
    while (size() < all) {
      viewport?.scrollTo(0, viewport.scrollHeight);
      await new Promise((resolve) => requestAnimationFrame(resolve));
    }
    viewport?.scrollTo(0, 0);
  }, many);
}

/**
 * Returns what says how many milliseconds the page's main thread has worked: its processor time, in
 * which other programs of a busy machine do not count.
 */
export async function meterOf(page: Page): Promise<() => Promise<number>> {
  const meter = await page.context().newCDPSession(page);
  await meter.send("Performance.enable", { timeDomain: "threadTicks" });
  return async () => {
    const { metrics } = await meter.send("Performance.getMetrics");
    return (metrics.find(({ name }) => name === "TaskDuration")?.value ?? 0) * 1000;
  };
}

/** The milliseconds of each frame while the list scrolls by most of a screen in each, sorted. */
export async function scroll(page: Page, frames = 200): Promise<number[]> {
  const spent = await meterOf(page);
  const took: number[] = [];
  for (let frame = 0; frame < frames; frame++) {
    const before = await spent();
    await page.evaluate(async () => {
      document.querySelector(".viewport")?.scrollBy(0, 600);
      await new Promise((resolve) => requestAnimationFrame(resolve));
    });
    took.push((await spent()) - before);
  }
  return took.sort((a, b) => a - b);
}
