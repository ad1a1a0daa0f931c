// graphile-worker: a durable queue in Postgres. The bench adds jobs by its documented SQL function, as any client may.
// A job's row is gone when it ends and holds no result, so the task itself keeps the sum, before the client hears of it.
import { Logger, run } from "graphile-worker";
import { answers } from "./answers.js";

const connectionString = process.env.DATABASE_URL;
const keep = await answers(connectionString);

// The settings that its page on performance gives for its own figures, with one connection for each call in flight.
await run({
  preset: {
    worker: {
      connectionString,
      concurrentJobs: 32,
      maxPoolSize: 34,
      localQueue: { size: 500 },
      completeJobBatchDelay: 0,
      failJobBatchDelay: 0,
      // A line for each job would be a good part of the work.
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
// The bench holds the other end, so this ends with it.
process.stdin.resume().on("end", () => process.exit(0));
process.stdout.write('{"ready":true}\n');
