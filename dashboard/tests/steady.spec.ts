/** Lists that change while they are looked at. */
import { expect, test, type Api } from "./world";

/** A record that is changed each time. */
function changing(api: Api, record: Record<string, unknown>): () => Promise<unknown> {
  let id: string | undefined;
  return async () => {
    if (id === undefined) return (id = await api.record(record));
    const { version, context } = await api.send<{ version: number; context: Record<string, unknown> }>("GET", `/breadcrumbs/${id}/full`);
    return await api.send("PATCH", `/breadcrumbs/${id}`, { context: { ...context, description: `Change ${version}.` } }, { "if-match": `"${version}"` });
  };
}

interface Steady {
  screen: string;
  /** What only a row of its list says. */
  row: string;
  writes: (api: Api) => () => Promise<unknown>;
}

const SCREENS: Record<string, Steady> = {
  "a session": {
    screen: "sessions/restless",
    row: "never rests",
    writes: (api) => () => api.call("echo", { message: "never rests" }, { session: "restless" }),
  },
  sessions: {
    screen: "sessions?q=unresting",
    row: "unresting",
    writes: (api) => () => api.call("echo", { message: "again" }, { session: "unresting" }),
  },
  records: {
    screen: "records?schema=restless.v1",
    row: "A restless record",
    writes: (api) => () => api.record({ title: "A restless record", schema_name: "restless.v1", context: {} }),
  },
  "working memory": {
    screen: "memory?q=restless-key",
    row: "restless-key",
    writes: (api) => () => api.call("save_to_working_memory", { key: "restless-key", value: "again" }, { session: "memory-restless" }),
  },
  tools: {
    screen: "tools?q=restless-draft",
    row: "restless-draft",
    writes: (api) =>
      changing(api, {
        title: "Restless draft",
        schema_name: "tool.code.v1",
        tags: ["tool", "tool:draft", "tool:restless-draft", "workspace:tools"],
        context: {
          name: "restless-draft",
          description: "It changes all the time.",
          version: "1.0.0",
          code: { language: "typescript", source: "export async function execute(input) { return input; }" },
          input_schema: { type: "object", properties: {} },
          output_schema: true,
          permissions: { net: false },
          examples: [{ description: "An example.", input: {} }],
        },
      }),
  },
  connections: {
    screen: "connections",
    row: "restless-server",
    writes: (api) =>
      changing(api, {
        title: "MCP server restless-server",
        schema_name: "mcp.server.v1",
        tags: ["mcp:server", "mcp:restless-server", "workspace:tools"],
        context: { name: "restless-server", enabled: false, transport: { type: "stdio", command: "no-such-program" } },
      }),
  },
};

for (const [name, { screen, row, writes }] of Object.entries(SCREENS)) {
  test(`${name}: new ones are shown while changes never rest`, async ({ api, page, open }) => {
    await open(screen);
    await expect(page.locator("[data-state=live]")).toBeVisible();
    await expect(page.getByText(/^Loading/)).toHaveCount(0);
    const shown = page.getByRole("main").getByRole("listitem").filter({ hasText: row });
    await expect(shown).toHaveCount(0);
    let isOver = false;
    const write = writes(api);
    const writing = (async () => {
      while (!isOver) await write();
    })();
    try {
      await expect(shown.first()).toBeVisible();
    } finally {
      isOver = true;
      await writing;
    }
  });
}

test("earlier calls of a session stay when a new one comes", async ({ api, page, open }) => {
  const said = (message: string) => api.call("echo", { message }, { session: "many-pages" });
  for (let done = 0; done < 110; done += 10) await Promise.all(Array.from({ length: 10 }, (_, at) => said(`${done + at}`)));
  await open("sessions/many-pages");
  const calls = page.getByRole("list", { name: "Calls of the session" }).getByRole("article");
  await expect(calls).toHaveCount(100);
  await page.getByRole("button", { name: "Show earlier calls" }).click();
  await expect(calls).toHaveCount(110);
  await said("the newest");
  await expect(calls).toHaveCount(111);
});
