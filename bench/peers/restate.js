// Restate: durable execution. The handler records no steps: Restate's log has the request before it
// runs and the result before the client gets it.
import { once } from "node:events";
import http2 from "node:http2";
import * as restate from "@restatedev/restate-sdk";

const calculator = restate.service({
  name: "calculator",
  handlers: { add: async (_context, { a, b }) => a + b },
});
// Logging a message for each invocation would take most of the time.
const handler = restate.createEndpointHandler({ services: [calculator], logger: () => {} });
const server = http2.createServer(handler);
server.listen(0, "127.0.0.1");
await once(server, "listening");
// The bench holds the other end, so this process exits with it.
process.stdin.resume().on("end", () => process.exit(0));
process.stdout.write(`${JSON.stringify({ ready: true, port: server.address().port })}\n`);
