/** A tool that makes one request of a REST service, from a description of the request. */
import { pretty } from "../../lib/format";
import { isObject, type ToolText } from "../definition";
import { described, inferred } from "./infer";

type Schema = Record<string, unknown>;

export interface Parameter {
  name: string;
  in: "path" | "query" | "header";
  required: boolean;
  schema: Schema;
  example?: unknown;
}

export interface RestRequest {
  method: string;
  /** With `{name}` for parameters of the path. */
  url: string;
  summary: string;
  parameters: Parameter[];
  /** The schema of a JSON body. */
  body?: Schema | undefined;
  /** The header or the query parameter that takes the secret. */
  auth?: { in: "header" | "query"; name: string; prefix: string; secret: string } | undefined;
  /** The schema of the response, and an example of it. */
  output?: Schema | undefined;
  response?: unknown;
}

/** The names of `{placeholders}` in a URL. */
export function placeholders(url: string): string[] {
  return [...url.matchAll(/\{([\w.-]+)\}/g)].map((found) => found[1] ?? "");
}

/** The example in a description, or a value of the type. */
function exampleOf(parameter: { schema: Schema; example?: unknown }): unknown {
  const { schema, example } = parameter;
  const given = example ?? schema["example"] ?? schema["default"] ?? (Array.isArray(schema["enum"]) ? schema["enum"][0] : undefined);
  if (given !== undefined) return given;
  switch (schema["type"]) {
    case "integer":
    case "number":
      return 1;
    case "boolean":
      return true;
    case "array":
      return [];
    case "object":
      return Object.fromEntries(requiredOf(schema).map((name) => [name, exampleOf({ schema: (schema["properties"] as Record<string, Schema>)[name] ?? {} })]));
    default:
      return "example";
  }
}

function requiredOf(schema: Schema): string[] {
  const properties = isObject(schema["properties"]) ? schema["properties"] : {};
  return Array.isArray(schema["required"]) ? schema["required"].map(String).filter((name) => properties[name] !== undefined) : [];
}

export function fromRest(name: string, description: string, request: RestRequest): ToolText {
  const { method, parameters, body, auth } = request;
  const base = new URL(request.url.replaceAll(/\{[\w.-]+\}/g, "x"));
  const isReading = method === "GET" || method === "HEAD";
  const properties = Object.fromEntries(parameters.map((one) => [one.name, one.schema]));
  const bodyName = properties["body"] === undefined ? "body" : "request_body";
  if (body !== undefined) properties[bodyName] = { description: "The body of the request.", ...body };
  const required = [...parameters.filter((one) => one.required).map((one) => one.name), ...(body === undefined ? [] : [bodyName])];
  const output = request.output ?? (request.response === undefined ? undefined : inferred(request.response));
  const input: Record<string, unknown> = Object.fromEntries(parameters.filter((one) => one.required).map((one) => [one.name, exampleOf(one)]));
  if (body !== undefined) input[bodyName] = exampleOf({ schema: body });
  const example = { description: "A request with its response", input, ...(request.response === undefined ? {} : { output: request.response, http: [exchange(request, input, input[bodyName])] }) };
  const definition = {
    name,
    description,
    version: "0.1.0",
    code: { language: "typescript" },
    input_schema: { ...described({ type: "object", properties, ...(required.length === 0 ? {} : { required }) }), additionalProperties: false },
    ...(output === undefined ? {} : { output_schema: described(output) }),
    permissions: { net: [base.host] },
    annotations: { read_only: isReading, destructive: !isReading, idempotent: isReading || method === "PUT" || method === "DELETE", open_world: true },
    limits: { timeout_ms: 20_000, memory_mb: 64 },
    ...(auth === undefined ? {} : { required_secrets: [auth.secret] }),
    examples: [example],
  };
  return { json: pretty(definition), source: sourceOf(request, description, bodyName) };
}

const member = (name: string) => (/^[A-Za-z_$][\w$]*$/.test(name) ? `input.${name}` : `input[${JSON.stringify(name)}]`);

function sourceOf(request: RestRequest, description: string, bodyName: string): string {
  const { method, parameters, body, auth } = request;
  const of = (place: Parameter["in"]) => parameters.filter((one) => one.in === place);
  const path = JSON.stringify(request.url).slice(1, -1).replaceAll("`", "\\`").replaceAll("${", "\\${");
  const url = path.replaceAll(/\{([\w.-]+)\}/g, (_, name: string) => `\${encodeURIComponent(${member(name)})}`);
  const secret = auth === undefined ? "" : `context.secrets${/^[A-Za-z_$][\w$]*$/.test(auth.secret) ? `.${auth.secret}` : `[${JSON.stringify(auth.secret)}]`}`;
  const headers = [
    "    accept: \"application/json\",",
    ...(body === undefined ? [] : ["    \"content-type\": \"application/json\","]),
    ...(auth?.in === "header" ? [`    ${JSON.stringify(auth.name)}: ${auth.prefix === "" ? secret : `\`${auth.prefix} \${${secret}}\``},`] : []),
  ];
  return [
    `// ${description.replaceAll(/\s+/g, " ")}`,
    "",
    "const TIMEOUT_MS = 15_000;",
    "",
    "export async function execute(input: Input, context: Context): Promise<Output> {",
    `  const url = new URL(\`${url}\`);`,
    ...of("query").map((one) => (one.required ? `  url.searchParams.set(${JSON.stringify(one.name)}, String(${member(one.name)}));` : `  if (${member(one.name)} !== undefined) url.searchParams.set(${JSON.stringify(one.name)}, String(${member(one.name)}));`)),
    ...(auth?.in === "query" ? [`  url.searchParams.set(${JSON.stringify(auth.name)}, ${secret});`] : []),
    "  const headers: Record<string, string> = {",
    ...headers,
    "  };",
    ...of("header").map((one) => `  if (${member(one.name)} !== undefined) headers[${JSON.stringify(one.name)}] = String(${member(one.name)});`),
    "  const response = await fetch(url, {",
    `    method: ${JSON.stringify(method)},`,
    "    headers,",
    ...(body === undefined ? [] : [`    body: JSON.stringify(${member(bodyName)}),`]),
    "    signal: AbortSignal.timeout(TIMEOUT_MS),",
    "  });",
    "  if (!response.ok) throw new Error(`${url.host} returned ${response.status} ${response.statusText}: ${(await response.text()).slice(0, 500)}`);",
    "  return await response.json();",
    "}",
    "",
  ].join("\n");
}

/** The request of the example as its test states it. */
function exchange(request: RestRequest, input: Record<string, unknown>, body: unknown): Record<string, unknown> {
  const url = new URL(request.url.replaceAll(/\{([\w.-]+)\}/g, (_, name: string) => encodeURIComponent(String(input[name] ?? ""))));
  for (const one of request.parameters) if (one.in === "query" && input[one.name] !== undefined) url.searchParams.set(one.name, String(input[one.name]));
  if (request.auth?.in === "query") url.searchParams.set(request.auth.name, `example-${request.auth.secret}`);
  return {
    request: { method: request.method, url: url.href, ...(body === undefined ? {} : { body }) },
    response: { status: 200, headers: { "content-type": "application/json" }, body: request.response },
  };
}
