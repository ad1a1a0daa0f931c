// The page /docs of the running server, in a DOM: RCRT_TEST_URL, RCRT_TEST_TOKEN.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { before, test } from "node:test";
import { Window } from "happy-dom";

const base = process.env.RCRT_TEST_URL;
const token = process.env.RCRT_TEST_TOKEN;
const copied = [];
let document;
let pending = 0;

/** The page's network: complete answers, so that nothing remains to be read once none is pending. */
async function fetched(path, options) {
  pending += 1;
  try {
    const answer = await fetch(new URL(path, `${base}/docs`), options);
    return new Response(await answer.text(), { status: answer.status, headers: answer.headers });
  } finally {
    pending -= 1;
  }
}

/** Waits until `found` returns something. */
async function until(found) {
  for (;;) {
    const value = found();
    if (value) return value;
    await new Promise((resolve) => setImmediate(resolve));
  }
}

const byId = (id) => document.getElementById(id);
const shown = (selector) => [...document.querySelectorAll(selector)].filter((entry) => !entry.closest("[hidden]"));

function type(field, text, event) {
  field.value = text;
  field.dispatchEvent(new document.defaultView.Event(event));
}

/** Opens an operation and returns its form. */
const form = (operation) => {
  byId(operation).open = true;
  return until(() => byId(operation).querySelector("form"));
};

function press(within, name) {
  [...within.querySelectorAll("button")].find((button) => button.textContent === name).click();
}

before(async () => {
  const window = new Window({ url: `${base}/docs` });
  document = window.document;
  const [page, script] = await Promise.all(["docs", "docs/page.js"].map(async (path) => (await fetch(`${base}/${path}`)).text()));
  // The script runs below, with the network of this process.
  document.documentElement.innerHTML = page.replace(/<script.*<\/script>/, "").replace(/<link.*>/g, "");
  const navigator = { clipboard: { writeText: async (text) => copied.push(text) } };
  new Function("window", "document", "location", "sessionStorage", "navigator", "fetch", script)(
    window, document, window.location, window.sessionStorage, navigator, fetched);
  await until(() => byId("invoke_tool"));
});

test("Find hides entries and the groups that are left empty", () => {
  type(byId("filter"), "", "input");
  const all = shown("#operations > section").length;
  const groups = shown("#index > div").length;
  assert.ok(all > 5 && groups > 5, `${all} ${groups}`);

  type(byId("filter"), "selectors", "input");
  assert.ok(shown("details.operation").some((view) => view.id === "list_selectors" || view.textContent.includes("/selectors")));
  for (const section of shown("#operations > section")) {
    assert.notEqual([...section.querySelectorAll("details, tbody > tr")].filter((entry) => !entry.hidden).length, 0, section.textContent);
  }
  assert.ok(shown("#operations > section").length < all);
  assert.ok(shown("#index > div").length < groups);
  assert.ok(shown("#index > div").every((group) => shown("#index li").some((entry) => group.contains(entry))));

  type(byId("filter"), "no such words", "input");
  assert.deepEqual([shown("#operations > section").length, shown("#index > div").length], [0, 0]);
  type(byId("filter"), "", "input");
  assert.deepEqual([shown("#operations > section").length, shown("#index > div").length], [all, groups]);
});

test("the table of problem codes names its columns", () => {
  const table = document.querySelector("table.problems");
  const heads = [...table.querySelectorAll("thead th")].map((head) => head.textContent);
  assert.deepEqual(heads, ["Code", "Status", "Title", "Advice"]);
  assert.equal(table.querySelectorAll("colgroup > col").length, heads.length);
  for (const row of table.querySelectorAll("tbody > tr")) assert.equal(row.children.length, heads.length);
});

test("the form of invoke offers the tools, and the chosen one's input", async () => {
  const invoke = await form("invoke_tool");
  const name = invoke.querySelector("input[name=name]");
  name.dispatchEvent(new document.defaultView.Event("focus"));
  assert.match((await until(() => invoke.querySelector("p.quiet"))).textContent, /A token is needed/);

  type(byId("token"), token, "input");
  name.dispatchEvent(new document.defaultView.Event("focus"));
  const names = byId(name.getAttribute("list"));
  await until(() => [...names.children].some((option) => option.value === "calculator"));
  type(name, "calculator", "change");
  const body = invoke.querySelector("textarea");
  await until(() => body.value.includes("expression"));
  const { input } = JSON.parse(body.value);
  assert.equal(typeof input.expression, "string");
  assert.ok([...invoke.querySelectorAll("table.fields code")].some((field) => field.textContent === "expression"));

  // What was edited is kept.
  body.value = '{"input": {"message": "it\'s"}}';
  type(name, "echo", "change");
  await until(() => [...invoke.querySelectorAll("table.fields code")].some((field) => field.textContent === "message"));
  await until(() => pending === 0);
  assert.match(body.value, /it's/);
});

test("a request is copied as a curl command that works", async () => {
  const invoke = await form("invoke_tool");
  type(byId("token"), token, "input");
  type(invoke.querySelector("input[name=name]"), "echo", "change");
  invoke.querySelector("textarea").value = '{"input": {"message": "it\'s"}}';
  copied.length = 0;
  press(invoke, "Copy as curl");
  const command = await until(() => copied[0]);
  assert.ok(!command.includes(token), command);
  for (const part of ["curl -X POST", `'${base}/tools/echo/invoke'`, "Bearer $TOKEN", "Content-Type: application/json"]) {
    assert.ok(command.includes(part), command);
  }
  await until(() => invoke.textContent.includes("Copied:"));
  const answer = execFileSync("sh", ["-c", `${command} --silent`], { env: { ...process.env, TOKEN: token } });
  assert.equal(JSON.parse(answer).output.echo, "it's");
});

test("a command names the parts that are not filled in", async () => {
  copied.length = 0;
  press(await form("get_breadcrumb"), "Copy as curl");
  assert.match(await until(() => copied[0]), /breadcrumbs\/ID'/);
  copied.length = 0;
  press(await form("stream_events"), "Copy as curl");
  assert.match(await until(() => copied[0]), /^curl -N /);
});
