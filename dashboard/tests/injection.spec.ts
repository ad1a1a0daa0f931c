import { expect, test } from "./world";

/** Each would set `pwned` if the page took it for more than text. */
const ATTACKS = [
  `<img src=x onerror="window.pwned=1">`,
  `<script>window.pwned=1</script>`,
  `"><svg onload="window.pwned=1">`,
  `javascript:window.pwned=1`,
  `{@html "<b>"}{window.pwned=1}`,
];

test("what tools and agents wrote is only text", async ({ api, page, open }) => {
  const text = ATTACKS.join(" ");
  const dialogs: string[] = [];
  page.on("dialog", (dialog) => {
    dialogs.push(dialog.message());
    void dialog.dismiss();
  });
  const harmless = async () => {
    expect(await page.evaluate(() => (window as { pwned?: unknown }).pwned)).toBeUndefined();
    await expect(page.locator('main img[src="x"], main svg[onload], main script')).toHaveCount(0);
  };

  const record = await api.record({ title: text, description: text, schema_name: "attack.v1", tags: ["attack"], context: { [text]: text, list: ATTACKS } });
  await open("records?schema=attack.v1");
  await expect(page.getByText(ATTACKS[0] ?? "").first()).toBeVisible();
  await harmless();
  await open(`records/${record}`);
  await expect(page.getByRole("heading", { level: 1 })).toContainText("onerror");
  await harmless();

  await api.tool("attacker", `export async function execute(input) { console.log(input.text); if (input.fail) throw new Error(input.text); return { [input.text]: input.text }; }`, {
    description: text,
    input_schema: { type: "object", properties: { text: { type: "string", description: text, default: text }, fail: { type: "boolean" } } },
    examples: [{ description: text, input: { text: "x" }, output: { x: "x" } }],
  });
  for (const tab of ["run", "about", "source", "examples", "calls", "versions"]) {
    await open(`tools/attacker?tab=${tab}`);
    await expect(page.getByRole("tab", { selected: true })).toBeVisible();
    await harmless();
  }
  for (const tab of ["code", "about", "input", "examples"]) {
    await open(`editor/attacker?tab=${tab}`);
    await expect(page.getByRole("region", { name: "Problems" })).toContainText(/problem|warning|error/);
    await harmless();
  }
  for (const fail of [false, true]) {
    const call = await api.call("attacker", { text, fail }, { session: text.slice(0, 100) });
    await open(`calls/${call.request}`);
    await expect(page.getByRole("region", { name: "Input" })).toContainText("onerror");
    await harmless();
  }
  await open(`live?session=${encodeURIComponent(text.slice(0, 100))}`);
  await expect(page.locator("a.call").first()).toBeVisible();
  await harmless();
  await open(`records/${record}?tab=relations`);
  await expect(page.getByRole("list", { name: "What led to it" })).toBeVisible();
  await harmless();
  await open("sessions");
  await expect(page.getByRole("list", { name: "Sessions" })).toContainText("onerror");
  await harmless();
  await open(`sessions/${encodeURIComponent(text.slice(0, 100))}`);
  await expect(page.getByRole("list", { name: "Calls of the session" })).toContainText("onerror");
  await harmless();
  await api.record({ title: text, schema_name: "mcp.server.v1", tags: ["mcp:server", "mcp:attack"], context: { name: "attack", description: text, transport: { type: "http", url: "https://attack.invalid/mcp" } } });
  const skills = ATTACKS.map((attack) => ({ id: attack, name: attack, description: attack }));
  const now = new Date().toISOString();
  const card = { card_hash: "a", description: text, version: text, interface: { url: ATTACKS[3], binding: "JSONRPC" }, skills };
  await api.record({ title: text, schema_name: "a2a.agent.v1", tags: ["a2a:agent", "a2a:agent:attack"], context: { name: "attack", card_url: ATTACKS[3], last_seen: now, refresh_at: now, ...card, pending: { ...card, card_hash: "b", description: ATTACKS[0] } } });
  await open("connections");
  await expect(page.getByRole("article", { name: "attack" }).first()).toContainText("onerror");
  await expect(page.getByRole("article", { name: "attack" }).last()).toContainText("onerror");
  await harmless();
  expect(await page.locator('a[href^="javascript:"]').count()).toBe(0);
  await open(`tools/${encodeURIComponent(ATTACKS[0] ?? "")}`);
  await expect(page.getByRole("alert")).toBeVisible();
  await harmless();
  expect(dialogs).toEqual([]);
});
