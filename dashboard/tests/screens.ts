/** Every screen with something to show, for the checks of access and for the pictures. */
import type { Api } from "./world";

export async function fill(api: Api): Promise<Record<string, string>> {
  // Again after a failed test.
  const secrets = await api.send<{ name: string }[]>("GET", "/secrets");
  if (!secrets.some((secret) => secret.name === "WEATHER_API_KEY")) {
    const made = await api.send<{ id: string }>("POST", "/secrets", { name: "WEATHER_API_KEY", value: "a value of a test", hosts: ["api.example.com"] });
    await api.send("POST", `/secrets/${made.id}/grants`, { tool: "public-holidays" });
  }
  for (let index = 0; index < 12; index++) {
    await api.call("calculator", { expression: `${index} * ${index + 1}` }, { session: index % 3 === 0 ? "support-12" : "chat-7" });
  }
  await api.call("echo", { message: "Hello" }, { session: "chat-7" });
  const good = await api.call("calculator", { expression: "(1 + 2) * 3" }, { session: "chat-7" });
  await api.call("calculator", { expression: 5 });
  const failed = await api.call("calculator", { expression: "1/0" }, { session: "support-12" });
  const large = await api.call("echo", { message: "many words ".repeat(9000) }, { session: "chat-7" });
  await api.call("save_to_working_memory", { key: "plan", value: { steps: ["search", "compare", "answer"], done: 1 } }, { session: "chat-7" });
  await api.call("save_to_working_memory", { key: "customer", value: "Ada Lovelace, account 4711" }, { session: "support-12" });
  await api.call("schedule_task", { name: "daily-report", cron: "0 8 * * 1-5", timezone: "Europe/Berlin", description: "Summarise the calls of the day before", tool: "echo", input: { message: "report" } });
  const record = await api.record({ title: "Refund policy", schema_name: "note.v1", tags: ["note", "workspace:support"], context: { text: "Refunds within 30 days.", owner: "support", rules: [{ days: 30, share: 1 }, { days: 60, share: 0.5 }] } });
  await api.send("PATCH", `/breadcrumbs/${record}`, { context: { text: "Refunds within 60 days.", owner: "support", rules: [{ days: 60, share: 1 }] } }, { "if-match": '"1"' });
  return {
    live: "live",
    call: `calls/${good.request}`,
    "failed-call": `calls/${failed.request}`,
    "large-result": `calls/${large.request}`,
    session: "sessions/support-12",
    tools: "tools",
    tool: `tools/calculator?tab=run&call=${good.request}`,
    definition: "tools/browser-context-capture?tab=about",
    source: "tools/calculator?tab=source",
    examples: "tools/calculator?tab=examples",
    "tool-calls": "tools/calculator?tab=calls",
    "waiting-tool": "tools/openrouter",
    editor: "editor/calculator",
    "editor-form": "editor/calculator?tab=input",
    "new-tool": "editor",
    records: "records",
    record: `records/${record}`,
    history: `records/${record}?tab=history`,
    memory: "memory",
    schedules: "schedules",
    agents: "agents",
    tokens: "tokens",
    secrets: "secrets",
    webhooks: "webhooks",
    health: "health",
  };
}
