/** The server that the tests talk to: `build/test-sdk` starts it and passes its URL. */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { createInterface } from "node:readline";

import { Rcrt } from "../src/index.js";

export function setting(name: string): string {
  const value = process.env[name];
  if (value === undefined) throw new Error(`${name} is not set; start the tests with build/test-sdk`);
  return value;
}

export const url = () => setting("RCRT_TEST_URL");

/** A client with all rights. */
export function curator(): Rcrt {
  return new Rcrt({ url: url(), token: setting("RCRT_TEST_TOKEN") });
}

/** A name that no other test uses. */
export function word(): string {
  return `t${crypto.randomUUID().replaceAll("-", "").slice(0, 16)}`;
}

/**
 * A separate server for a test, on its own port, that can be stopped and started again on the same
 * data.
 */
export class OwnServer {
  #process: ChildProcess | undefined;
  url = "";
  token = "";
  #listen = "127.0.0.1:0";

  private constructor(
    readonly data: string,
    readonly options: string[],
  ) {}

  static async start(data: string, ...options: string[]): Promise<OwnServer> {
    const server = new OwnServer(data, options);
    await server.again();
    return server;
  }

  /** Resolves when it responds. */
  async again(): Promise<void> {
    const options = ["up", "--data", this.data, "--listen", this.#listen, "--no-seed", ...this.options];
    const child = spawn(setting("RCRT_BIN"), options, { stdio: ["ignore", "pipe", "inherit"] });
    this.#process = child;
    for await (const line of createInterface({ input: child.stdout })) {
      const found = /^API\s+(http:\/\/\S+)/.exec(line);
      if (found?.[1] !== undefined) this.url = found[1];
      if (line.startsWith("Ctrl-C")) break;
    }
    if (this.url === "") throw new Error("rcrt did not start");
    child.stdout.resume();
    this.#listen = new URL(this.url).host;
    this.token = (await readFile(`${this.data}/token`, "utf8")).trim();
  }

  /** `SIGKILL` is a crash, `SIGTERM` an orderly stop. */
  async end(signal: "SIGKILL" | "SIGTERM"): Promise<void> {
    const child = this.#process;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const exit = once(child, "exit");
    child.kill(signal);
    await exit;
  }
}

/** A proxy between the client and the server that a test can make fail. */
export class Scripted {
  readonly requests: { method: string; url: string; headers: NodeJS.Dict<string | string[]>; body: string }[] = [];
  #server: Server;
  #answers: Answer[] = [];

  private constructor() {
    this.#server = createServer((request, response) => {
      let body = "";
      request.setEncoding("utf8").on("data", (part) => (body += part));
      request.on("end", () => {
        this.requests.push({ method: request.method ?? "", url: request.url ?? "", headers: request.headers, body });
        const answer = this.#answers.shift();
        if (answer === undefined || answer === "cut") return void request.socket.destroy();
        response.writeHead(answer.status, { "content-type": "application/json", ...answer.headers });
        if (answer.broken === true) return void response.write(answer.text ?? "", () => request.socket.destroy());
        if (answer.open === true) response.write(answer.text ?? "");
        else response.end(answer.text ?? JSON.stringify(answer.json ?? {}));
      });
    });
  }

  static async start(...answers: Answer[]): Promise<Scripted> {
    const scripted = new Scripted();
    scripted.#answers = answers;
    scripted.#server.listen(0, "127.0.0.1");
    await once(scripted.#server, "listening");
    return scripted;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }
}

/**
 * `cut`: the connection closes without a response. `open`: the response continues. `broken`: it
 * closes within the response.
 */
export type Answer = "cut" | { status: number; headers?: Record<string, string>; json?: unknown; text?: string | Uint8Array; open?: boolean; broken?: boolean };

export function problem(status: number, code: string, headers: Record<string, string> = {}): Answer {
  return { status, headers, json: { type: `/docs#problem-${code}`, title: code, status, detail: "set by the test", code } };
}
