/** The event stream, over connections that a test breaks. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { Rcrt, type EventItem } from "../src/index.js";
import { problem, Scripted, type Answer } from "./world.js";

const hello = (id: number) => `id: ${id}\ndata: {"type":"ping"}\n\n`;
const event = (id: number) => `id: ${id}\ndata: ${JSON.stringify({ type: "breadcrumb.created", breadcrumb_id: `b${id}`, version: 1, tags: [], context: {}, owner_id: "o", updated_at: "" })}\n\n`;
const stream = (text: string, open = false): Answer => ({ status: 200, headers: { "content-type": "text/event-stream" }, text, open });

async function take(client: Rcrt, count: number, options: Parameters<Rcrt["events"]>[0] = {}): Promise<EventItem[]> {
  const found: EventItem[] = [];
  for await (const item of client.events(options)) {
    found.push(item);
    if (found.length === count) break;
  }
  return found;
}

test("each event once, in order, however the connection breaks", async () => {
  const server = await Scripted.start(
    stream(hello(5) + event(6) + event(7) + event(8).slice(0, 20)),
    "cut",
    problem(503, "unavailable"),
    stream(hello(7) + event(7) + event(8)),
    stream(hello(9)),
    stream(hello(9) + event(10), true),
  );
  try {
    const lost: string[] = [];
    const client = new Rcrt({ url: server.url, token: "t" });
    const found = await take(client, 4, { filters: { all_tags: ["a"] }, onReconnect: (why) => lost.push(why.name) });
    assert.deepEqual(found.map((one) => one.id), ["6", "7", "8", "10"]);
    assert.deepEqual(server.requests.map((one) => one.headers["last-event-id"]), [undefined, "7", "7", "7", "8", "9"]);
    assert.equal(new URL(server.requests[0]?.url ?? "", server.url).searchParams.get("filters"), '{"all_tags":["a"]}');
    assert.deepEqual(lost, ["Unreachable", "Unreachable", "ProblemError", "Unreachable", "Unreachable"]);
  } finally {
    await server.close();
  }
});

test("missed events are reported in order", async () => {
  const missed = `id: 49\ndata: {"type":"missed","after":7,"first":50}\n\n`;
  const server = await Scripted.start(stream(hello(7) + missed + event(50)), stream(hello(50) + event(51), true));
  try {
    const found = await take(new Rcrt({ url: server.url, token: "t" }), 3, { after: 7 });
    assert.deepEqual(found.map((one) => [one.type, one.id]), [["missed", "49"], ["breadcrumb.created", "50"], ["breadcrumb.created", "51"]]);
    assert.deepEqual(found[0]?.type === "missed" && [found[0].after, found[0].first], [7, 50]);
  } finally {
    await server.close();
  }
});

test("a silent connection counts as lost", async () => {
  const server = await Scripted.start(stream(hello(1), true), stream(hello(1) + event(2), true));
  try {
    const lost: string[] = [];
    const found = await take(new Rcrt({ url: server.url, token: "t" }), 1, { silenceMs: 100, onReconnect: (why) => lost.push(why.message) });
    assert.deepEqual(found.map((one) => one.id), ["2"]);
    assert.match(lost[0] ?? "", /nothing came for 100 ms/);
  } finally {
    await server.close();
  }
});

const cuts = (count: number): Answer[] => Array.from({ length: count }, () => "cut");

test("a lost stream is tried again, for the time that is set", async () => {
  // A stream that was not connected yet, of a client that has reached the server.
  const server = await Scripted.start({ status: 200, json: [] }, ...cuts(6), stream(hello(1) + event(2), true));
  try {
    const client = new Rcrt({ url: server.url, token: "t" });
    await client.listBreadcrumbs();
    assert.deepEqual((await take(client, 1)).map((one) => one.id), ["2"]);
  } finally {
    await server.close();
  }
  for (const [answers, options, requests] of [[[stream(hello(1))], { retryMs: 0 }, 6], [[], {}, 6]] as const) {
    const server = await Scripted.start(...answers, ...cuts(20));
    try {
      await assert.rejects(take(new Rcrt({ url: server.url, token: "t" }), 1, options), { code: "unreachable" });
      assert.equal(server.requests.length, requests);
    } finally {
      await server.close();
    }
  }
});

test("a refusal closes the stream", async () => {
  const server = await Scripted.start(problem(403, "forbidden"));
  try {
    await assert.rejects(take(new Rcrt({ url: server.url, token: "t" }), 1), { code: "forbidden" });
    assert.equal(server.requests.length, 1);
  } finally {
    await server.close();
  }
});

test("an unreadable event is reported in the end", async () => {
  const broken = stream(hello(1) + "id: 2\ndata: {no json\n\n");
  const server = await Scripted.start(broken, broken, broken, broken, broken);
  try {
    await assert.rejects(take(new Rcrt({ url: server.url, token: "t" }), 1), /the event after 1 cannot be read/);
  } finally {
    await server.close();
  }
});

test("a signal closes a waiting stream", async () => {
  const server = await Scripted.start(stream(hello(1) + event(2), true));
  try {
    const giveUp = new AbortController();
    const following = (async () => {
      for await (const _ of new Rcrt({ url: server.url, token: "t" }).events({ signal: giveUp.signal })) giveUp.abort(new Error("enough"));
    })();
    await assert.rejects(following, /enough/);
  } finally {
    await server.close();
  }
});
