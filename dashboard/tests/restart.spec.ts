import { expect, test as base } from "@playwright/test";
import { Proxy } from "./proxy";
import { Server } from "./server";
import { Api, signIn } from "./world";

base.skip(process.env["RCRT_TEST_PAGE"] !== undefined, "the page comes from another server");

base("the page catches up after the server was killed and started again", async ({ page }) => {
  const server = await Server.start();
  try {
    const api = new Api(server.url, server.token);
    await signIn(page, api.token);
    await page.goto(`${server.url}/#/live`);
    const rows = page.locator("a.call");
    const before = await api.call("echo", { message: "before" });
    await expect(page.locator(`a.call[href$="${before.request}"]`)).toBeVisible();
    await expect(page.locator("[data-state=live]")).toBeVisible();
    await server.stop("SIGKILL");
    await expect(page.locator("[data-state=lost]")).toBeVisible();
    await expect(rows.first()).toBeVisible();
    await server.run();
    // Before and after the page is connected again.
    const first = await api.call("echo", { message: "first after the start" });
    await expect(page.locator("[data-state=live]")).toBeVisible();
    const second = await api.call("echo", { message: "second" });
    for (const call of [before, first, second]) await expect(page.locator(`a.call[href$="${call.request}"]`)).toContainText("success");
  } finally {
    await page.close();
    await server.remove();
  }
});

base("nothing is missed while the machine sleeps", async ({ page }) => {
  const server = await Server.start();
  const proxy = await Proxy.start(server.port);
  try {
    const api = new Api(server.url, server.token);
    await signIn(page, api.token);
    await page.goto(`${proxy.url}/#/live?session=sleep`);
    await expect(page.locator("[data-state=live]")).toBeVisible();
    await api.call("echo", { message: "before" }, { session: "sleep" });
    const rows = page.locator("a.call");
    await expect(rows).toHaveCount(1);
    const machine = await page.context().newCDPSession(page);
    await machine.send("Page.setWebLifecycleState", { state: "frozen" });
    proxy.sleep();
    for (let call = 0; call < 5; call++) await api.call("echo", { message: `asleep ${call}` }, { session: "sleep" });
    proxy.wake();
    await machine.send("Page.setWebLifecycleState", { state: "active" });
    await expect(rows).toHaveCount(6);
    await api.call("echo", { message: "awake" }, { session: "sleep" });
    await expect(rows).toHaveCount(7);
    for (const row of await rows.all()) await expect(row).toContainText("success");
  } finally {
    await page.close();
    proxy.close();
    await server.remove();
  }
});
