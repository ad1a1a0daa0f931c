import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test as base } from "@playwright/test";
import { Server } from "./server";
import { Api, signIn } from "./world";

base.skip(process.env["RCRT_TEST_PAGE"] !== undefined, "the page comes from another server");

/** A model that knows two topics: each has a dimension, and everything else shares the third. */
const TOPICS = [/refund|reimburse|money/i, /parcel|courier/i];
const meaning = (text: string) => [...TOPICS.map((topic) => (topic.test(text) ? 1 : 0)), 0.1];

base("records and tools are found by their meaning", async ({ page }) => {
  const model = createServer((request, response) => {
    let body = "";
    request.on("data", (chunk: Buffer) => (body += chunk.toString()));
    request.on("end", () => {
      const { input } = JSON.parse(body) as { input: string[] };
      const data = input.map((text, index) => ({ object: "embedding", index, embedding: meaning(text) }));
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ object: "list", data, model: "topics", usage: { prompt_tokens: 1, total_tokens: 1 } }));
    });
  });
  await new Promise<void>((resolve) => model.listen(0, "127.0.0.1", resolve));
  const server = await Server.start({ RCRT_EMBEDDINGS: `http://127.0.0.1:${(model.address() as AddressInfo).port}/v1`, RCRT_EMBEDDING_MODEL: "topics" });
  try {
    const api = new Api(server.url, server.token);
    await api.record({ title: "Policy 12", schema_name: "policy.v1", context: { text: "Refunds within a week." } });
    await api.record({ title: "Policy 13", schema_name: "policy.v1", context: { text: "Parcels come on Mondays." } });
    const source = "export async function execute(input) { return input; }";
    await api.tool("reimburse", source, { description: "Reimburses a customer." });
    await api.tool("track", source, { description: "Tells where a parcel is." });
    const nearest = async () => (await api.send<{ title: string }[]>("GET", "/breadcrumbs/search?mode=vector&q=money&schema_name=policy.v1")).map((one) => one.title);
    await expect.poll(nearest).toEqual(["Policy 12", "Policy 13"]);

    await signIn(page, api.token);
    await page.goto(`${server.url}/#/records?schema=policy.v1`);
    const records = page.getByRole("list", { name: "Records" }).getByRole("link");
    await expect(records).toHaveCount(2);
    await page.getByLabel("How to search").selectOption("By words");
    await page.getByLabel("Search records").fill("money returned");
    await expect(page.getByText("No record matches")).toBeVisible();
    await page.getByLabel("How to search").selectOption("By meaning");
    await expect(records.first()).toContainText("Policy 12");
    await page.getByLabel("Search records").fill("courier");
    await expect(records.first()).toContainText("Policy 13");

    await page.goto(`${server.url}/#/tools`);
    const tools = page.getByRole("list", { name: "Tools" });
    const search = page.getByLabel("Search tools");
    await search.fill("money returned");
    await expect(tools.getByRole("link", { name: /^reimburse/ })).toBeVisible();
    await expect(tools.getByRole("link", { name: /^track/ })).toHaveCount(0);
    await search.fill("courier");
    await expect(tools.getByRole("link", { name: /^track/ })).toBeVisible();
    await expect(tools.getByRole("link", { name: /^reimburse/ })).toHaveCount(0);
  } finally {
    await page.close();
    await server.remove();
    model.close();
  }
});
