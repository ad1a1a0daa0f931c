// pg-boss: a durable queue in Postgres. A line on stdin is a call, sent as pg-boss's own client
// sends one. pg-boss itself stores the result in the job's row. A trigger sends it in the commit
// that completes the job.
import { createInterface } from "node:readline";
import { PgBoss } from "pg-boss";
import pg from "pg";

const connectionString = process.env.DATABASE_URL;
const queue = "add";

// Its documented ways to low latency and high rates: LISTEN/NOTIFY instead of polling alone,
// batches with a result for each job (one statement for all of them), two workers so that one
// fetches while the other completes.
const boss = new PgBoss({ connectionString, max: 34, useListenNotify: true });
boss.on("error", (error) => console.error(error));
await boss.start();
await boss.createQueue(queue, { notify: true });

const client = new pg.Client({ connectionString });
await client.connect();
await client.query(`
  CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    PERFORM pg_notify('answers', NEW.output::text);
    RETURN NULL;
  END $$;
  CREATE TRIGGER tell AFTER UPDATE ON pgboss.job FOR EACH ROW
    WHEN (NEW.state = 'completed' AND OLD.state <> 'completed') EXECUTE FUNCTION tell();
`);
await client.end();

await boss.work(
  queue,
  { batchSize: 32, localConcurrency: 2, burstWhenBatchFull: true, perJobResults: true },
  async (jobs) =>
    jobs.map(({ id, data: { call, a, b } }) => ({ id, status: "completed", output: { call, sum: a + b } })),
);

createInterface({ input: process.stdin }).on("line", (line) => {
  const job = JSON.parse(line);
  boss.send(queue, job).catch((error) => {
    process.stdout.write(`${JSON.stringify({ call: job.call, failed: String(error) })}\n`);
  });
}).on("close", () => process.exit(0));
process.stdout.write('{"ready":true}\n');
