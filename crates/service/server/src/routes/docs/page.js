"use strict";
// Shows /openapi.json: operations by tag, with a form to try each. Text from the description is
// only ever set as text.

const METHODS = ["get", "post", "put", "patch", "delete"];
const byId = (id) => document.getElementById(id);

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== undefined && child !== null));
  return made;
}

/** Plain words with `code` in backticks, in paragraphs. */
function prose(text = "") {
  // Links between items of the source mean nothing here: their last word does.
  const plain = text.replace(/\[`(?:\w+::)*(\w+)`\]/g, "`$1`");
  return plain.split(/\n\n+/).filter(Boolean).map((paragraph) => {
    const parts = paragraph.split("`").map((part, index) => (index % 2 ? element("code", {}, part) : part));
    return element("p", {}, ...parts);
  });
}

function resolve(schema, description) {
  if (!schema || !schema.$ref) return schema ?? {};
  return schema.$ref.replace("#/", "").split("/").reduce((node, step) => node?.[step], description) ?? {};
}

/** The name of a schema's type, linked to where it is shown. */
function typeName(schema = {}) {
  if (schema.$ref) {
    const name = schema.$ref.split("/").pop();
    return element("a", { href: `#schema-${name}` }, name);
  }
  if (schema.oneOf || schema.anyOf) {
    const choices = (schema.oneOf ?? schema.anyOf).filter((one) => one.type !== "null");
    return element("span", {}, ...choices.flatMap((one, index) => (index ? [" or ", typeName(one)] : [typeName(one)])));
  }
  if (schema.enum) return element("span", {}, schema.enum.map((one) => JSON.stringify(one)).join(", "));
  const types = [schema.type ?? "any"].flat().filter((type) => type !== "null");
  if (types[0] === "array") return element("span", {}, "array of ", typeName(schema.items));
  return element("span", {}, types.join(" or ") + (schema.format ? ` (${schema.format})` : ""));
}

/** An example value for a request body: only what is required. */
function example(schema, description, depth = 0) {
  const known = resolve(schema, description);
  if (known.example !== undefined) return known.example;
  if (known.default !== undefined) return known.default;
  if (known.enum) return known.enum[0];
  const choice = (known.oneOf ?? known.anyOf)?.find((one) => one.type !== "null");
  if (choice) return example(choice, description, depth);
  if (known.allOf) return Object.assign({}, ...known.allOf.map((one) => example(one, description, depth)));
  switch ([known.type].flat().find((type) => type !== "null")) {
    case "object": {
      if (depth > 4) return {};
      const entries = (known.required ?? []).map((name) => [name, example(known.properties?.[name], description, depth + 1)]);
      return Object.fromEntries(entries);
    }
    case "array": return [];
    case "integer": case "number": return known.minimum ?? 1;
    case "boolean": return false;
    case "string": return known.format === "uuid" ? "00000000-0000-0000-0000-000000000000" : "";
    default: return {};
  }
}

/** The style sheet has the widths of the columns, by the name of the table. */
function table(name, heads, rows) {
  return element("table", { class: name },
    element("colgroup", {}, ...heads.map((head) => element("col", { class: head.toLowerCase() }))),
    element("thead", {}, element("tr", {}, ...heads.map((head) => element("th", { scope: "col" }, head)))),
    element("tbody", {}, ...rows));
}

function parameterTable(parameters) {
  if (!parameters.length) return [];
  return [
    element("h3", {}, "Parameters"),
    table("parameters", ["Name", "Where", "Type", "Meaning"], parameters.map((parameter) => element("tr", {},
      element("td", {}, element("code", {}, parameter.name), parameter.required ? " (required)" : ""),
      element("td", {}, parameter.in),
      element("td", {}, typeName(parameter.schema)),
      element("td", {}, parameter.description ?? "")))),
  ];
}

function responseTable(responses) {
  const rows = Object.entries(responses).map(([status, response]) => {
    const [media, content] = Object.entries(response.content ?? {})[0] ?? [];
    return element("tr", {},
      element("td", {}, status),
      element("td", {}, response.description ?? ""),
      element("td", {}, content ? typeName(content.schema) : "", media ? element("div", { class: "quiet" }, media) : ""));
  });
  return [element("h3", {}, "Answers"), table("answers", ["Status", "Meaning", "Body"], rows)];
}

/** A schema that is put together from several, as one. */
function merged(schema, description) {
  const known = resolve(schema, description);
  if (!known.allOf) return known;
  const parts = known.allOf.map((part) => merged(part, description));
  return {
    ...known,
    properties: Object.assign({}, ...parts.map((part) => part.properties)),
    required: parts.flatMap((part) => part.required ?? []),
  };
}

/** Fields of a schema, as rows. */
function schemaTable(schema, description) {
  const known = merged(schema, description);
  const required = new Set(known.required ?? []);
  const rows = Object.entries(known.properties ?? {}).map(([name, property]) => element("tr", {},
    element("td", {}, element("code", {}, name), required.has(name) ? " (required)" : ""),
    element("td", {}, typeName(property)),
    element("td", {}, ...prose(property.description))));
  return rows.length ? table("fields", ["Name", "Type", "Meaning"], rows) : element("p", {}, typeName(known));
}

/** For a POSIX shell. */
const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

/** The token is a variable, so that it is not copied. */
function curlCommand({ method, address, headers, body }, isStream) {
  const words = ["curl", isStream ? "-N" : "", method === "GET" ? "" : `-X ${method}`, quoted(new URL(address, document.baseURI).href)];
  for (const [name, value] of Object.entries(headers)) {
    words.push(name === "Authorization" ? '-H "Authorization: Bearer $TOKEN"' : `-H ${quoted(`${name}: ${value}`)}`);
  }
  if (body !== undefined) words.push(`--data ${quoted(body)}`);
  return words.filter(Boolean).join(" ");
}

function tryForm(method, path, operation, parameters, description) {
  const fields = parameters.filter((parameter) => parameter.name !== "token").map((parameter) => {
    const id = `${operation.operationId}-${parameter.name}`;
    const input = element("input", { id, name: parameter.name, required: parameter.required, spellcheck: "false" });
    const hint = [parameter.schema?.type].flat().includes("array") ? "several: one per comma" : "";
    return { parameter, input, shown: element("label", { for: id }, parameter.name, " ", element("small", {}, hint)) };
  });
  const bodySchema = operation.requestBody?.content?.["application/json"]?.schema;
  const bodyId = `${operation.operationId}-body`;
  const body = bodySchema && element("textarea", { id: bodyId, spellcheck: "false" });
  if (body) body.value = JSON.stringify(example(bodySchema, description), null, 2);
  const result = element("div", { role: "status", "aria-live": "polite" });
  const stop = element("button", { type: "button", class: "second", disabled: true }, "Stop");

  /** The request as the fields say. A required field without a value appears as its name, in capitals. */
  const request = () => {
    const query = new URLSearchParams();
    const headers = {};
    // Relative, so that it is right behind a proxy that serves this page under a path.
    let address = path.replace(/^\//, "");
    for (const { parameter, input } of fields) {
      const value = input.value || (parameter.required ? parameter.name.toUpperCase() : "");
      if (!value) continue;
      if (parameter.in === "path") address = address.replace(`{${parameter.name}}`, encodeURIComponent(value));
      else if (parameter.in === "header") headers[parameter.name] = value;
      else if ([parameter.schema?.type].flat().includes("array")) value.split(",").forEach((one) => query.append(parameter.name, one.trim()));
      else query.append(parameter.name, value);
    }
    if (query.size) address += `?${query}`;
    if (operation.security) headers.Authorization = `Bearer ${byId("token").value.trim()}`;
    if (body) headers["Content-Type"] = "application/json";
    return { method: method.toUpperCase(), address, headers, body: body?.value };
  };
  const copy = async () => {
    const isStream = Object.values(operation.responses).some((response) => response.content?.["text/event-stream"]);
    const command = curlCommand(request(), isStream);
    const note = element("p", {}, "Select and copy it:");
    result.replaceChildren(note, element("pre", { tabindex: "0", "aria-label": "Command" }, command));
    // Only pages of https and of this machine have the clipboard.
    await navigator.clipboard?.writeText(command).then(() => { note.textContent = "Copied:"; }, () => {});
  };
  const send = async (event) => {
    event.preventDefault();
    const { address, headers, ...asked } = request();
    if (!byId("token").value) delete headers.Authorization;
    const abort = new AbortController();
    stop.onclick = () => abort.abort();
    stop.disabled = false;
    const output = element("pre", { tabindex: "0", "aria-label": "Answer" });
    result.replaceChildren(element("p", {}, "Asking…"));
    const began = performance.now();
    try {
      const answer = await fetch(address, { ...asked, headers, signal: abort.signal });
      const took = Math.round(performance.now() - began);
      const named = ["etag", "location", "idempotency-replayed", "allow", "www-authenticate", "x-request-id"]
        .filter((name) => answer.headers.has(name)).map((name) => `${name}: ${answer.headers.get(name)}`);
      result.replaceChildren(
        element("p", { class: answer.ok ? "good" : "bad" }, `${answer.status} ${answer.statusText} · ${took} ms`),
        element("pre", {}, `${asked.method} ${address}\n${named.join("\n")}`), output);
      await show(answer, output);
    } catch (error) {
      if (abort.signal.aborted) result.append(element("p", {}, "Stopped."));
      else result.replaceChildren(element("p", { class: "bad" }, `No response: ${error.message}`));
    } finally {
      stop.disabled = true;
    }
  };
  const named = fields.find(({ parameter }) => parameter.in === "path" && parameter.name === "name");
  const choice = operation.operationId === "invoke_tool" ? [toolChoice(named.input, body)] : [];
  return element("form", { onsubmit: send },
    element("h3", {}, "Try it"),
    ...fields.flatMap(({ parameter, shown, input }) => [shown, input, ...(parameter === named?.parameter ? choice : [])]),
    body && element("label", { for: bodyId }, "Body ", element("small", {}, "JSON")), body,
    element("button", {}, "Send"), stop,
    element("button", { type: "button", class: "second", onclick: copy }, "Copy as curl"), result);
}

/** An answer as JSON; undefined if there is none. */
async function read(address) {
  const headers = { Authorization: `Bearer ${byId("token").value.trim()}` };
  const answer = await fetch(address, { headers }).catch(() => undefined);
  return answer?.ok ? answer.json() : undefined;
}

/** Offers the names of the tools. For the chosen one, shows its input and writes its first example into the body. */
function toolChoice(input, body) {
  const names = element("datalist", { id: "tool-names" });
  const about = element("div", { "aria-live": "polite" });
  input.setAttribute("list", names.id);
  let tools = [];
  let tokenOfTools;
  let written = body.value;
  const load = async () => {
    const used = byId("token").value;
    if (used === tokenOfTools) return;
    tokenOfTools = used;
    tools = used ? (await read("tools"))?.tools ?? [] : [];
    names.replaceChildren(...tools.map((tool) => element("option", { value: tool.name })));
    about.replaceChildren(tools.length ? "" : element("p", { class: "quiet" }, "A token is needed to list the tools; enter it at the top."));
  };
  const choose = async () => {
    await load();
    const tool = tools.find((one) => one.name === input.value);
    if (!tool) return;
    about.replaceChildren(...prose(tool.description), element("h3", {}, "Its input"), schemaTable(tool.parameters, tool.parameters));
    const record = await read(`breadcrumbs/${tool.tool_id}/full`);
    // Text that was edited is kept, and so is a name that was typed since.
    if (input.value !== tool.name || body.value !== written) return;
    const first = record?.context?.examples?.[0]?.input ?? example(tool.parameters, tool.parameters);
    written = JSON.stringify({ input: first }, null, 2);
    body.value = written;
  };
  input.addEventListener("focus", load);
  input.addEventListener("change", choose);
  return element("div", {}, names, about);
}

/** An answer as text: JSON laid out, a stream as it comes. */
async function show(answer, output) {
  const media = answer.headers.get("content-type") ?? "";
  if (!media.startsWith("text/event-stream")) {
    const text = await answer.text();
    try { output.textContent = JSON.stringify(JSON.parse(text), null, 2); } catch { output.textContent = text; }
    return;
  }
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    output.textContent = (output.textContent + part.value).slice(-100000);
    output.scrollTop = output.scrollHeight;
  }
}

/** What Find looks for in an entry, besides its own text. */
const words = new WeakMap();

function searchable(entry, ...parts) {
  words.set(entry, parts.join(" ").toLowerCase());
  return entry;
}

function operationView(method, path, operation, description) {
  const parameters = (operation.parameters ?? []).map((parameter) => resolve(parameter, description));
  const bodySchema = operation.requestBody?.content?.["application/json"]?.schema;
  const inside = element("div");
  const view = element("details", { class: "operation", id: operation.operationId },
    element("summary", {},
      element("span", { class: "method" }, method.toUpperCase()),
      element("span", { class: "path" }, path),
      element("span", { class: "quiet" }, operation.summary ?? "")),
    inside);
  // Built when it is opened: the page is long.
  view.addEventListener("toggle", () => {
    if (!view.open || inside.childNodes.length) return;
    inside.append(
      ...prose(operation.description), ...parameterTable(parameters),
      ...(bodySchema ? [element("h3", {}, "Body: ", typeName(bodySchema)), schemaTable(bodySchema, description)] : []),
      ...responseTable(operation.responses),
      tryForm(method, path, operation, parameters, description));
  });
  return view;
}

function render(description) {
  byId("title").textContent = description.info.title;
  byId("about").replaceWith(...prose(description.info.description));
  const operations = Object.entries(description.paths).flatMap(([path, item]) =>
    METHODS.filter((method) => item[method]).map((method) => ({ method, path, operation: item[method] })));
  const main = byId("operations");
  for (const tag of description.tags) {
    const mine = operations.filter(({ operation }) => operation.tags?.includes(tag.name));
    if (!mine.length) continue;
    main.append(element("section", { "aria-labelledby": `tag-${tag.name}` },
      element("h2", { id: `tag-${tag.name}` }, tag.name), ...prose(tag.description),
      ...mine.map(({ method, path, operation }) =>
        searchable(operationView(method, path, operation, description), operation.operationId, operation.description))));
    byId("index").append(element("div", {}, element("strong", {}, tag.name),
      element("ul", {}, ...mine.map(({ method, path, operation }) => searchable(
        element("li", {}, element("a", { href: `#${operation.operationId}`, title: operation.summary }, `${method.toUpperCase()} ${path}`)),
        operation.operationId, operation.summary, operation.description)))));
  }
  const codes = description["x-problem-codes"] ?? [];
  main.append(element("section", {}, element("h2", { id: "problems" }, "Problem codes"),
    table("problems", ["Code", "Status", "Title", "Advice"], codes.map(({ code, status, title, advice }) =>
      element("tr", { id: `problem-${code}` },
        element("td", {}, element("code", {}, code)), element("td", {}, String(status)), element("td", {}, title),
        element("td", {}, ...prose(advice)))))));
  main.append(element("section", {}, element("h2", { id: "schemas" }, "Schemas"),
    ...Object.entries(description.components?.schemas ?? {}).map(([name, schema]) =>
      element("details", { class: "operation", id: `schema-${name}` }, element("summary", {}, element("span", { class: "path" }, name)),
        element("div", {}, ...prose(schema.description), schemaTable(schema, description))))));
}

/** Opens what the address points at. */
function openTarget() {
  const target = location.hash && byId(decodeURIComponent(location.hash.slice(1)));
  if (!target) return;
  if (target.tagName === "DETAILS") target.open = true;
  target.scrollIntoView();
}

const ENTRIES = "details.operation, table.problems > tbody > tr, #index li";
const GROUPS = "#operations > section, #index > div";

/** Hides the entries without these words, and the groups without a visible entry. */
function filter() {
  const wanted = byId("filter").value.trim().toLowerCase();
  const found = new Set();
  for (const entry of document.querySelectorAll(ENTRIES)) {
    entry.hidden = !`${entry.textContent.toLowerCase()} ${words.get(entry) ?? ""}`.includes(wanted);
    if (!entry.hidden) found.add(entry.closest(GROUPS));
  }
  for (const group of document.querySelectorAll(GROUPS)) group.hidden = !found.has(group);
}

const token = byId("token");
token.value = sessionStorage.getItem("rcrt-token") ?? "";
token.addEventListener("input", () => sessionStorage.setItem("rcrt-token", token.value));
byId("token-form").addEventListener("submit", (event) => event.preventDefault());
byId("show-token").addEventListener("change", (event) => { token.type = event.target.checked ? "text" : "password"; });
byId("filter").addEventListener("input", filter);
window.addEventListener("hashchange", openTarget);
fetch("openapi.json").then((answer) => answer.json()).then(render).then(openTarget)
  .catch((error) => { byId("operations").append(element("p", { class: "bad" }, `The description could not be read: ${error.message}`)); });
