/** Between the browser and a server: it can hold everything back, as for a machine that sleeps. */
import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net";

export class Proxy {
  readonly #sockets = new Set<Socket>();
  #isAsleep = false;

  private constructor(readonly listener: Server) {}

  static async start(port: number): Promise<Proxy> {
    const proxy = new Proxy(createServer((browser) => proxy.#join(browser, connect(port, "127.0.0.1"))));
    await new Promise<void>((resolve) => proxy.listener.listen(0, "127.0.0.1", resolve));
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.listener.address() as AddressInfo).port}`;
  }

  sleep(): void {
    this.#isAsleep = true;
    for (const socket of this.#sockets) socket.pause();
  }

  /** The connections of before are gone. */
  wake(): void {
    this.#isAsleep = false;
    for (const socket of this.#sockets) socket.destroy();
  }

  close(): void {
    this.wake();
    this.listener.close();
  }

  #join(browser: Socket, server: Socket): void {
    for (const [from, to] of [[browser, server], [server, browser]] as const) {
      this.#sockets.add(from);
      from.on("data", (data) => void to.write(data));
      from.on("error", () => undefined);
      from.on("close", () => {
        this.#sockets.delete(from);
        to.destroy();
      });
    }
    if (this.#isAsleep) for (const socket of [browser, server]) socket.pause();
  }
}
