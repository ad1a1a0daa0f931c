/** A real server on a free port, with its own data folder. */
import { spawn, type ChildProcess } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

export class Server {
  #child: ChildProcess | undefined;
  readonly data = mkdtempSync(join(tmpdir(), "rcrt-dashboard."));

  private constructor(
    readonly port: number,
    readonly settings: Record<string, string>,
  ) {}

  /** With further settings, as variables of its environment. */
  static async start(settings: Record<string, string> = {}): Promise<Server> {
    const server = new Server(await freePort(), settings);
    await server.run();
    return server;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** That of the operator's first agent, which may do everything. */
  get token(): string {
    return readFileSync(join(this.data, "token"), "utf8").trim();
  }

  /** Starts the program, also again after {@link stop}. */
  async run(): Promise<void> {
    const program = process.env["RCRT_BIN"];
    if (program === undefined) throw new Error("RCRT_BIN must be the path of the program; build/test-dashboard sets it");
    const env = { ...process.env, RCRT_EMBEDDINGS: "off", ...this.settings };
    const child = spawn(program, ["up", "--data", this.data, "--listen", `127.0.0.1:${this.port}`], { env, stdio: ["ignore", "pipe", "pipe"] });
    this.#child = child;
    let said = "";
    await new Promise<void>((resolve, reject) => {
      const read = (chunk: Buffer) => {
        said += chunk.toString();
        if (said.includes("Ctrl-C stops everything")) resolve();
      };
      child.stdout.on("data", read);
      child.stderr.on("data", read);
      child.on("exit", () => reject(new Error(`the server did not start: ${said}`)));
    });
  }

  async stop(signal: NodeJS.Signals = "SIGINT"): Promise<void> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null) return;
    const ended = new Promise((resolve) => child.on("exit", resolve));
    child.kill(signal);
    await ended;
  }

  async remove(): Promise<void> {
    await this.stop();
    rmSync(this.data, { recursive: true, force: true });
  }
}

async function freePort(): Promise<number> {
  return await new Promise((resolve, reject) => {
    const probe = createServer().on("error", reject);
    probe.listen(0, "127.0.0.1", () => {
      const address = probe.address();
      probe.close(() => (typeof address === "object" && address !== null ? resolve(address.port) : reject(new Error("no port"))));
    });
  });
}
