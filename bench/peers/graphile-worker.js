// graphile-worker: a durable queue in Postgres. The bench adds jobs by its documented SQL function,
// as any client can. A finished job's row is deleted and has no result, so the task itself stores
// the sum before the client gets it.
import { Logger, run } from "graphile-worker";
import { answers } from "./answers.js";

const connectionString = process.env.DATABASE_URL;
const keep = await answers(connectionString);

// The settings of its page on performance, with one connection for each call in flight.
await run({
  preset: {
    worker: {
      connectionString,
      concurrentJobs: 32,
      maxPoolSize: 34,
      localQueue: { size: 500 },
      completeJobBatchDelay: 0,
      failJobBatchDelay: 0,
      // Logging a line for each job would take much of the time.
      logger: new Logger(() => () => {}),
    },
  },
  taskList: {
    add: async ({ call, a, b }, { withPgClient }) => {
      const sum = a + b;
      await withPgClient((client) => keep(client, call, sum));
      process.stdout.write(`${JSON.stringify({ call, sum })}\n`);
    },
  },
});
// The bench holds the other end, so this process exits with it.
process.stdin.resume().on("end", () => process.exit(0));
process.stdout.write('{"ready":true}\n');
