/** What the tests share: a signed-in page, and the API beside it. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { expect, test as base, type Page } from "@playwright/test";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

export interface Call {
  request: string;
  [name: string]: unknown;
}

/** The API as a program uses it. */
export class Api {
  constructor(
    readonly url: string,
    readonly token: string,
  ) {}

  async send<T = Record<string, unknown>>(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<T> {
    const answer = await fetch(`${this.url}${path}`, {
      method,
      headers: { authorization: `Bearer ${this.token}`, "content-type": "application/json", ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
    return JSON.parse(text) as T;
  }

  /** Calls a tool. With `wait` 0 it returns once the request is written. */
  async call(tool: string, input: unknown, { wait = 60, ...fields }: { wait?: number; session?: string } = {}): Promise<Call> {
    const answer = await this.send<Record<string, unknown>>("POST", `/tools/${tool}/invoke`, { input, ...fields }, { prefer: wait === 0 ? "respond-async" : `wait=${wait}` });
    const metadata = answer["metadata"] as { request?: string } | undefined;
    return { ...answer, request: String(answer["request"] ?? metadata?.request) };
  }

  async record(record: Record<string, unknown>): Promise<string> {
    return (await this.send<{ id: string }>("POST", "/breadcrumbs", record)).id;
  }

  /** Writes a tool, and waits until it is offered in this version. */
  async tool(name: string, source: string, more: Record<string, unknown> = {}): Promise<string> {
    const context = {
      name,
      description: `The test's ${name}.`,
      version: "1.0.0",
      code: { language: "typescript", source },
      input_schema: { type: "object", properties: {} },
      output_schema: true,
      permissions: { net: false },
      examples: [{ description: "An example.", input: {} }],
      ...more,
    };
    const id = await this.record({ title: name, schema_name: "tool.code.v1", tags: ["tool", `tool:${name}`, "workspace:tools"], context });
    await expect.poll(async () => (await fetch(`${this.url}/tools/${name}`, { headers: { authorization: `Bearer ${this.token}` } })).status, { timeout: 120_000 }).toBe(200);
    return id;
  }

  /** A token of a new agent. */
  async agent(name: string, roles: string[]): Promise<string> {
    const agent = await this.send<{ id: string; owner_id: string; agent_key: string }>("POST", "/agents", { name, roles });
    const given = await this.send<{ token: string }>("POST", "/auth/token", { owner_id: agent.owner_id, agent_id: agent.id, agent_key: agent.agent_key });
    return given.token;
  }
}

export async function signIn(page: Page, token: string): Promise<void> {
  await page.addInitScript((given) => sessionStorage.setItem("rcrt.token", given), token);
}

/** What axe finds wrong with the page. */
export async function findings(page: Page): Promise<string[]> {
  await page.evaluate(AXE);
  return await page.evaluate(async () => {
    const { axe } = window as unknown as { axe: { run(): Promise<{ violations: { id: string; help: string; nodes: { html: string; failureSummary: string }[] }[] }> } };
    const { violations } = await axe.run();
    return violations.map(({ id, help, nodes }) => `${id}: ${help}: ${nodes.map((node) => `${node.html.slice(0, 160)} ${node.failureSummary}`).join(" | ")}`);
  });
}

interface World {
  api: Api;
  /** The page, signed in as the agent that may do everything. */
  page: Page;
  open: (hash: string) => Promise<void>;
}

export const test = base.extend<World>({
  api: async ({}, use) => {
    await use(new Api(process.env["RCRT_TEST_URL"] ?? "", process.env["RCRT_TEST_TOKEN"] ?? ""));
  },
  page: async ({ page, api }, use) => {
    const wrong: string[] = [];
    page.on("pageerror", (error) => wrong.push(String(error)));
    page.on("console", (message) => {
      // Refused requests are a part of some tests.
      if (message.type() === "error" && !message.text().startsWith("Failed to load resource")) wrong.push(message.text());
    });
    await signIn(page, api.token);
    await use(page);
    // Also what the Content-Security-Policy refused.
    expect(wrong).toEqual([]);
  },
  open: async ({ page, api }, use) => {
    await use(async (hash) => {
      await page.goto(`${process.env["RCRT_TEST_PAGE"] ?? api.url}/#/${hash}`);
    });
  },
});

export { expect };
