// `browser.mjs CHROMIUM DIST`: a page of another origin than the server's runs the walk with the
// package.
import { spawn } from "node:child_process";
import { createServer } from "node:http";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const [chromium, dist] = process.argv.slice(2);
const here = dirname(fileURLToPath(import.meta.url));
const page = `<!doctype html><title>rcrt</title><script type="module">
import { walk } from "/anywhere.mjs";
const say = (said) => fetch("/said", { method: "POST", body: said });
try {
  const rcrt = await import("/dist/index.js");
  await say(await walk(rcrt, ${JSON.stringify(process.env.RCRT_TEST_URL)}, ${JSON.stringify(process.env.RCRT_TEST_TOKEN)}));
} catch (error) { await say(String(error?.stack ?? error)); }
</script>`;
let say;
const said = new Promise((resolve) => (say = resolve));
const server = createServer(async (request, response) => {
  if (request.url === "/said") {
    let text = "";
    for await (const part of request) text += part;
    response.end();
    return say(text);
  }
  if (request.url === "/") return response.setHeader("content-type", "text/html").end(page);
  const file = request.url === "/anywhere.mjs" ? join(here, "anywhere.mjs") : join(dist, basename(request.url));
  const text = await readFile(file).catch(() => undefined);
  if (text === undefined) return response.writeHead(404).end();
  response.setHeader("content-type", "text/javascript").end(text);
});
server.listen(0, "127.0.0.1");
await new Promise((resolve) => server.once("listening", resolve));
const profile = await mkdtemp(join(tmpdir(), "rcrt-browser-"));
const sandbox = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
const options = ["--headless", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", `--user-data-dir=${profile}`, ...sandbox];
const browser = spawn(chromium, [...options, `http://127.0.0.1:${server.address().port}/`], { stdio: ["ignore", "ignore", "pipe"] });
let noise = "";
browser.stderr.on("data", (part) => (noise += part));
const gone = new Promise((resolve) => browser.once("exit", (code) => resolve(`the browser ended with ${code}: ${noise}`)));
const late = new Promise((resolve) => setTimeout(() => resolve(`nothing in two minutes: ${noise}`), 120_000).unref());
const outcome = await Promise.race([said, gone, late]);
browser.kill();
await gone;
server.close();
await rm(profile, { recursive: true, force: true, maxRetries: 5 });
console.log(outcome);
process.exit(outcome === "walked" ? 0 : 1);
