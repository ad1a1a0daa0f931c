/** The names of agents, which only curators can list. For others an agent is a short id. */
import type { AgentInfo } from "@rcrt/client";
import { session } from "./session.svelte";
import { shortId } from "./format";

class AgentNames {
  #names = $state.raw<Map<string, string>>(new Map());
  #loadedFor: string | undefined;

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
    return this.#names.get(id) ?? shortId(id);
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
