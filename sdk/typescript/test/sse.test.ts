import assert from "node:assert/strict";
import { test } from "node:test";

import { SseParser, type Message } from "../src/sse.js";

function read(...parts: string[]): Message[] {
  const parser = new SseParser();
  return parts.flatMap((part) => parser.read(part));
}

const message = (id: string, data: string, event = ""): Message => ({ id, event, data });

test("the standard's own examples", () => {
  const text = ": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n";
  assert.deepEqual(read(text), [message("1", "first event"), message("", "second event"), message("", " third event")]);
  assert.deepEqual(read("data\n\ndata\ndata\n\ndata:"), [message("", ""), message("", "\n")]);
  assert.deepEqual(read("\ufeffdata: YHOO\r\ndata: +2\rdata: 10\n\n"), [message("", "YHOO\n+2\n10")]);
});

test("an id stays until the next one; an event's name is of one message", () => {
  assert.deepEqual(read("id: 7\n\ndata: a\nevent: x\n\nid: 8\ndata: b\n\n"), [message("7", "a", "x"), message("8", "b")]);
  assert.deepEqual(read("id: 7\nid: 8\0\ndata: a\n\n"), [message("7", "a")]);
});

test("any split of the text is parsed alike", () => {
  const text = "\ufeffid: 1\r\ndata: a\r\n\r\n: note\rdata: b\rdata: é☃\n\ndata\n\nid: 2\ndata: c\r\r\ndata: d\n\n";
  const whole = read(text);
  assert.equal(whole.length, 5);
  for (let first = 0; first <= text.length; first++) {
    for (let second = first; second <= text.length; second++) {
      assert.deepEqual(read(text.slice(0, first), text.slice(first, second), text.slice(second)), whole);
    }
  }
});
