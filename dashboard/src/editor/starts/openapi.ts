/** The operations of an OpenAPI document, as requests that a tool can make. */
import { isObject } from "../definition";
import type { Parameter, RestRequest } from "./rest";

type Json = Record<string, unknown>;

export interface Operation {
  /** Such as `GET /pets/{id}`. */
  title: string;
  /** A name for the tool. */
  name: string;
  request: RestRequest;
}

const METHODS = ["get", "post", "put", "patch", "delete"];
const MOST_DEPTH = 12;

/** Throws an error that says what is wrong with the document, which is JSON or YAML. */
export async function operationsOf(text: string): Promise<Operation[]> {
  const document = await parsed(text);
  if (isObject(document) && document["swagger"] !== undefined) throw new Error("The document is of Swagger 2, which is not read. Convert it to OpenAPI 3.");
  if (!isObject(document) || !isObject(document["paths"])) throw new Error("The document has no paths, so it is no OpenAPI document.");
  const root = document;
  const servers = Array.isArray(root["servers"]) ? root["servers"] : [];
  const server = String((servers[0] as Json | undefined)?.["url"] ?? "");
  if (!/^https?:\/\//.test(server)) throw new Error("The document names no server: add \"servers\": [{\"url\": \"https://…\"}].");
  const found: Operation[] = [];
  for (const [path, item] of Object.entries(document["paths"])) {
    if (!isObject(item)) continue;
    for (const method of METHODS) {
      const operation = item[method];
      if (isObject(operation)) found.push(operationOf(root, server, path, method, operation, item));
    }
  }
  if (found.length === 0) throw new Error("The document has no operations.");
  return found;
}

async function parsed(text: string): Promise<unknown> {
  // What begins so is meant as JSON: YAML's message about a mistake in it would not help.
  if (/^\s*[{[]/.test(text)) {
    try {
      return JSON.parse(text);
    } catch (error) {
      throw new Error(`The document is not JSON: ${(error as Error).message}`);
    }
  }
  const { parse } = await import("yaml");
  try {
    return parse(text, { logLevel: "error" });
  } catch (error) {
    throw new Error(`The document is neither JSON nor YAML: ${(error as Error).message}`);
  }
}

function operationOf(root: Json, server: string, path: string, method: string, operation: Json, item: Json): Operation {
  const listed = [...list(item["parameters"]), ...list(operation["parameters"])].map((one) => resolved(one, root)).filter(isObject);
  const parameters = listed.filter((one) => ["path", "query", "header"].includes(String(one["in"]))).map((one): Parameter => {
    const schema = isObject(one["schema"]) ? one["schema"] : { type: "string" };
    const about = typeof one["description"] === "string" ? { description: one["description"] } : {};
    return { name: String(one["name"]), in: one["in"] as Parameter["in"], required: one["required"] === true || one["in"] === "path", schema: { ...schema, ...about }, example: one["example"] };
  });
  const body = json(resolved(operation["requestBody"], root));
  const responses = isObject(operation["responses"]) ? operation["responses"] : {};
  const good = Object.entries(responses).find(([status]) => /^2/.test(status))?.[1];
  const answer = json(resolved(good, root));
  const title = `${method.toUpperCase()} ${path}`;
  return {
    title,
    name: nameOf(String(operation["operationId"] ?? title)),
    request: {
      method: method.toUpperCase(),
      url: `${server.replace(/\/$/, "")}${path}`,
      summary: String(operation["summary"] ?? operation["description"] ?? title),
      parameters,
      body: body?.schema,
      output: answer?.schema,
      response: answer?.example,
      auth: authOf(root, operation),
    },
  };
}

function list(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

/** The JSON of a body or a response. */
function json(value: unknown): { schema: Json | undefined; example: unknown } | undefined {
  const content = isObject(value) && isObject(value["content"]) ? value["content"] : {};
  const media = content["application/json"];
  if (!isObject(media)) return undefined;
  const examples = isObject(media["examples"]) ? Object.values(media["examples"]) : [];
  return { schema: isObject(media["schema"]) ? media["schema"] : undefined, example: media["example"] ?? (examples[0] as Json | undefined)?.["value"] };
}

/** A copy in which references inside of the document are what they refer to. */
function resolved(value: unknown, root: Json, depth = 0): unknown {
  if (depth > MOST_DEPTH) return {};
  if (Array.isArray(value)) return value.map((one) => resolved(one, root, depth + 1));
  if (!isObject(value)) return value;
  const ref = value["$ref"];
  if (typeof ref === "string" && ref.startsWith("#/")) {
    const steps = ref.slice(2).split("/").map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"));
    return resolved(steps.reduce<unknown>((at, step) => (isObject(at) ? at[step] : undefined), root) ?? {}, root, depth + 1);
  }
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, resolved(one, root, depth + 1)]));
}

function authOf(root: Json, operation: Json): RestRequest["auth"] {
  const needed = list(operation["security"] ?? root["security"])[0];
  const name = isObject(needed) ? Object.keys(needed)[0] : undefined;
  const components = isObject(root["components"]) ? root["components"] : {};
  const schemes = isObject(components["securitySchemes"]) ? components["securitySchemes"] : {};
  const scheme = name === undefined ? undefined : resolved(schemes[name], root);
  if (!isObject(scheme) || name === undefined) return undefined;
  const secret = nameOf(name).replaceAll(/[.-]/g, "_").replace(/([a-z])([A-Z])/g, "$1_$2").toUpperCase();
  if (scheme["type"] === "apiKey" && scheme["in"] !== "cookie") return { in: scheme["in"] === "query" ? "query" : "header", name: String(scheme["name"]), prefix: "", secret };
  if (scheme["type"] === "oauth2" || scheme["type"] === "openIdConnect" || /^bearer$/i.test(String(scheme["scheme"]))) return { in: "header", name: "authorization", prefix: "Bearer", secret };
  return undefined;
}

/** A valid name of a tool. */
export function nameOf(text: string): string {
  const words = text.replaceAll(/[^A-Za-z0-9_.-]+/g, "-").replaceAll(/^[-.\d]+|-+$/g, "");
  return words.slice(0, 100) || "new-tool";
}
