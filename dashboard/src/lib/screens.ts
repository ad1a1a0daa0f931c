/** The screens of the navigation, and who is offered them. */
import { session } from "./session.svelte";

export interface Screen {
  id: string;
  name: string;
  /** After `g`, the key that opens it. */
  key: string;
}

export function screens(): Screen[] {
  const { can } = session;
  const all: (Screen & { shown: boolean })[] = [
    { id: "live", name: "Live", key: "l", shown: true },
    { id: "sessions", name: "Sessions", key: "n", shown: true },
    { id: "tools", name: "Tools", key: "t", shown: true },
    { id: "records", name: "Records", key: "r", shown: can.readRecords },
    { id: "memory", name: "Working memory", key: "m", shown: can.readRecords },
    { id: "connections", name: "Connections", key: "c", shown: can.readRecords },
    { id: "schedules", name: "Schedules", key: "s", shown: can.readRecords },
    { id: "agents", name: "Agents", key: "a", shown: can.curate },
    { id: "tokens", name: "Tokens", key: "o", shown: true },
    { id: "secrets", name: "Secrets", key: "e", shown: can.listSecrets },
    { id: "webhooks", name: "Webhooks", key: "w", shown: can.readWebhooks },
    { id: "health", name: "Health", key: "h", shown: true },
    { id: "settings", name: "Settings", key: ",", shown: true },
  ];
  return all.filter((screen) => screen.shown);
}
