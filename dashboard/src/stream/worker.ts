/**
 * The one event stream of all tabs. A browser opens at most six connections to a server, and each
 * tab with its own stream would take one of them.
 */
import { Source, type Message } from "./source";

export type Request = { type: "open"; url: string; token: string } | { type: "close" };

interface Shared {
  source: Source;
  ports: Set<MessagePort>;
}

/** By URL and token: tabs can be signed in as different agents. */
const sources = new Map<string, Shared>();

function open(port: MessagePort, url: string, token: string): void {
  close(port);
  const key = `${url} ${token}`;
  let shared = sources.get(key);
  if (shared === undefined) {
    const ports = new Set<MessagePort>();
    const send = (message: Message) => ports.forEach((one) => one.postMessage(message));
    shared = { ports, source: new Source(url, token, send) };
    sources.set(key, shared);
  }
  shared.ports.add(port);
  port.postMessage(shared.source.state);
}

function close(port: MessagePort): void {
  for (const [key, { source, ports }] of sources) {
    if (ports.delete(port) && ports.size === 0) {
      source.close();
      sources.delete(key);
    }
  }
}

addEventListener("connect", (event) => {
  const port = (event as MessageEvent).ports[0];
  if (port === undefined) return;
  port.onmessage = ({ data }: MessageEvent<Request>) => {
    if (data.type === "open") open(port, data.url, data.token);
    else close(port);
  };
});
