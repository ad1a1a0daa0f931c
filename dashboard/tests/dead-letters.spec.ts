import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test as base } from "@playwright/test";
import { Server } from "./server";
import { Api, signIn } from "./world";

base.skip(process.env["RCRT_TEST_PAGE"] !== undefined, "the page comes from another server");

base("dead letters of a webhook are inspected, tried again and dropped", async ({ page }) => {
  let status = 500;
  const arrived: string[] = [];
  const receiver = createServer((request, response) => {
    let body = "";
    request.on("data", (chunk: Buffer) => (body += chunk.toString()));
    request.on("end", () => {
      if (status === 200) arrived.push(body);
      response.writeHead(status).end();
    });
  });
  await new Promise<void>((resolve) => receiver.listen(0, "127.0.0.1", resolve));
  const host = `127.0.0.1:${(receiver.address() as AddressInfo).port}`;
  const server = await Server.start({ RCRT_WEBHOOK_MAX_ATTEMPTS: "1", RCRT_ALLOW_PRIVATE_HOST: `webhooks=${host}` });
  try {
    const api = new Api(server.url, server.token);
    const own = (await api.send<{ id: string; name: string }[]>("GET", "/agents")).find((agent) => agent.name === "first")?.id;
    await api.send("POST", `/agents/${own}/webhooks`, { url: `http://${host}/orders`, selector: { schema_name: "order.v1" } });
    for (const order of ["A-1", "A-2", "A-3", "A-4"]) await api.record({ title: `Order ${order}`, schema_name: "order.v1", context: { order } });
    await expect.poll(async () => (await api.send<unknown[]>("GET", "/dlq")).length).toBe(4);
    await signIn(page, api.token);
    await page.goto(`${server.url}/#/webhooks`);
    const section = page.getByRole("region", { name: "Dead letters" });
    const letters = section.getByRole("listitem");
    await expect(letters).toHaveCount(4);

    const second = letters.nth(1);
    await expect(second).toContainText("after 1 attempt");
    await expect(second).toContainText("500");
    await second.getByRole("button", { name: `http://${host}/orders` }).click();
    const order = /A-\d/.exec((await second.getByText(/A-\d/).first().textContent()) ?? "")?.[0] ?? "";
    expect(order).not.toBe("");

    status = 200;
    await second.getByRole("button", { name: "Try again" }).click();
    await expect(letters).toHaveCount(3);
    await expect.poll(() => arrived.length).toBe(1);
    expect(arrived[0]).toContain(order);

    await letters.first().getByRole("button", { name: "Drop" }).click();
    await expect(letters).toHaveCount(2);
    await section.getByRole("button", { name: "Drop all" }).click();
    await page.getByRole("button", { name: "Drop them" }).click();
    await expect(section.getByText("None: every delivery arrived or is still tried.")).toBeVisible();
    expect(await api.send<unknown[]>("GET", "/dlq")).toEqual([]);
    expect(arrived).toHaveLength(1);
  } finally {
    await page.close();
    await server.remove();
    receiver.close();
  }
});
