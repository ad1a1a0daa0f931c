/** The names of agents, which only curators can list. For others an agent is a short id. */
import type { AgentInfo } from "@rcrt/client";
import { session } from "./session.svelte";
import { shortId } from "./format";

class AgentNames {
  #names = $state.raw<Map<string, string>>(new Map());
  #loadedFor: string | undefined;
  /** Those that were not in the list: they are new, or deleted. */
  #unknown = new Set<string>();

  async load(): Promise<void> {
    const token = session.token;
    if (!session.can.curate || token === undefined || this.#loadedFor === token) return;
    this.#loadedFor = token;
    try {
      const agents = await session.client.listAgents();
      this.#names = new Map(agents.map((agent) => [agent.id, agent.name]));
    } catch (error) {
      session.check(error);
      this.#loadedFor = undefined;
    }
  }

  /** After a change of an agent. */
  async reload(): Promise<void> {
    this.#loadedFor = undefined;
    await this.load();
  }

  of(id: string | null | undefined): string {
    if (id == null) return "";
    if (id === session.identity?.agentId) return this.#names.get(id) ?? "you";
    const name = this.#names.get(id);
    if (name === undefined) this.#ask(id);
    return name ?? shortId(id);
  }

  /** An agent that was made since the list was read. Not at once: a screen is being drawn. */
  #ask(id: string): void {
    if (this.#unknown.has(id) || !session.can.curate || this.#names.size === 0) return;
    this.#unknown.add(id);
    setTimeout(() => void this.reload());
  }

  get all(): [string, string][] {
    return [...this.#names];
  }
}

/** Which tools an agent can call, in words. */
export function allowedTools(agent: AgentInfo): string {
  if (agent.tools == null) return "every offered tool";
  const { names = [], sources = [], tags = [] } = agent.tools;
  return [...names, ...sources.map((one) => `source ${one}`), ...tags.map((one) => `tag ${one}`)].join(", ") || "no tool";
}

export const agentNames = new AgentNames();
