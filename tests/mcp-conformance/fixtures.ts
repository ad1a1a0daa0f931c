// The tools that the conformance suite of MCP calls. build/mcp-conformance publishes each under its
// name, with `const TOOL = "<name>";` in front of this code.

declare const TOOL: string;

const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const WAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=";

type Responses = Record<string, any>;

interface Input {
  input_responses?: Responses;
  request_state?: any;
  [name: string]: any;
}

const text = (text: string) => ({ type: "text", text });
const image = { type: "image", data: PNG, mimeType: "image/png" };
const content = (...blocks: unknown[]) => ({ content: blocks });
const user = (content: unknown) => ({ role: "user", content });
const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

const elicit = (message: string, properties: Record<string, unknown>, required = Object.keys(properties)) => ({
  method: "elicitation/create",
  params: { mode: "form", message, requestedSchema: { type: "object", properties, required } },
});
const sample = (text: string, maxTokens = 100) => ({
  method: "sampling/createMessage",
  params: { messages: [user({ type: "text", text })], maxTokens },
});
const ask = (inputRequests: Record<string, unknown>, requestState?: unknown) => ({
  resultType: "input_required",
  inputRequests,
  ...(requestState === undefined ? {} : { requestState }),
});
const name = elicit("What is your name?", { name: { type: "string" } });
const roots = { method: "roots/list", params: {} };

/** The accepted answer to a form; undefined if there is none. */
const accepted = (input: Input, key: string) => {
  const answer = input.input_responses?.[key];
  return answer?.action === "accept" && typeof answer.content === "object" ? answer.content : undefined;
};

/** Changes a record of this schema, so that clients are notified. */
async function touch(context: any, schema_name: string, wanted: string) {
  const found = await context.api.searchBreadcrumbs({ schema_name, include_context: true, limit: 100 });
  const record = found.find((record: any) => record.context?.name === wanted);
  if (!record) throw new Error(`there is no ${wanted}`);
  const changed = { ...record.context, description: `Changed at ${Date.now()}.` };
  await context.api.updateBreadcrumb(record.id, record.version, { context: changed });
  return text("changed");
}

const TOOLS: Record<string, (input: Input, context: any) => unknown> = {
  test_simple_text: () => "This is a simple text response for testing.",
  test_image_content: () => content(image),
  test_audio_content: () => content({ type: "audio", data: WAV, mimeType: "audio/wav" }),
  test_embedded_resource: () =>
    content({
      type: "resource",
      resource: {
        uri: "test://embedded-resource",
        mimeType: "text/plain",
        text: "This is an embedded resource content.",
      },
    }),
  test_multiple_content_types: () =>
    content(text("Multiple content types test:"), image, {
      type: "resource",
      resource: {
        uri: "test://mixed-content-resource",
        mimeType: "application/json",
        text: JSON.stringify({ test: "data", value: 123 }),
      },
    }),
  test_error_handling: () => {
    throw new Error("This tool intentionally returns an error for testing");
  },
  test_tool_with_progress: async (_, context) => {
    // Reports within 250 ms become one.
    for (const fraction of [0, 0.5, 1]) {
      context.progress(fraction, "");
      await pause(400);
    }
    return "done";
  },
  test_logging_tool: () => {
    console.log("a line");
    return "logged";
  },
  json_schema_2020_12_tool: (input) => input,
  test_custom_headers: (input) => input,
  test_trigger_tool_change: async (_, context) => content(await touch(context, "tool.code.v1", "test_logging_tool")),
  test_trigger_prompt_change: async (_, context) => content(await touch(context, "mcp.prompt.v1", "test_simple_prompt")),

  // Input of the client
  test_missing_capability: (input) => (input.input_responses ? "done" : ask({ model: sample("Hello") })),
  test_streaming_elicitation: (input) => (accepted(input, "user_name") ? "done" : ask({ user_name: name })),
  test_input_required_result_elicitation: (input) => {
    const given = accepted(input, "user_name");
    return typeof given?.name === "string" ? `Hello, ${given.name}!` : ask({ user_name: name });
  },
  test_input_required_result_sampling: (input) => {
    const answer = input.input_responses?.capital_question;
    return answer?.content?.text ?? ask({ capital_question: sample("What is the capital of France?") });
  },
  test_input_required_result_list_roots: (input) => {
    const given = input.input_responses?.client_roots?.roots;
    return given ? `Roots: ${JSON.stringify(given)}` : ask({ client_roots: roots });
  },
  test_input_required_result_request_state: (input) =>
    input.request_state?.step === 1 && accepted(input, "confirm")
      ? "state-ok"
      : ask({ confirm: elicit("Please confirm", { ok: { type: "boolean" } }) }, { step: 1 }),
  test_input_required_result_multiple_inputs: (input) => {
    const keys = ["user_name", "greeting", "client_roots"];
    return keys.every((key) => input.input_responses?.[key])
      ? "all received"
      : ask({ user_name: name, greeting: sample("Generate a greeting", 50), client_roots: roots }, { step: 1 });
  },
  test_input_required_result_multi_round: (input) => {
    const step = input.request_state?.step;
    if (step === 1 && accepted(input, "step1")) {
      const color = elicit("Step 2: What is your favorite color?", { color: { type: "string" } });
      return ask({ step2: color }, { step: 2, name: accepted(input, "step1").name });
    }
    if (step === 2 && accepted(input, "step2")) {
      return `${input.request_state.name} likes ${accepted(input, "step2").color}`;
    }
    return ask({ step1: elicit("Step 1: What is your name?", { name: { type: "string" } }) }, { step: 1 });
  },
  test_input_required_result_tampered_state: (input) =>
    input.request_state
      ? "accepted"
      : ask({ confirm: elicit("Please confirm", { ok: { type: "boolean" } }) }, { step: 1 }),
  test_input_required_result_capabilities: (input) =>
    input.input_responses ? "done" : ask({ user_name: name, greeting: sample("Generate a greeting") }),

  // Revisions before 2026-07-28
  test_sampling: (input) => {
    const answer = input.input_responses?.model;
    return answer ? `LLM response: ${answer.content?.text}` : ask({ model: sample(input.prompt) });
  },
  test_elicitation: (input) => {
    const answer = input.input_responses?.form;
    if (answer) return `User response: ${JSON.stringify(answer)}`;
    const field = (description: string) => ({ type: "string", description });
    return ask({ form: elicit(input.message, { username: field("User's response"), email: field("User's email address") }) });
  },
  test_elicitation_sep1034_defaults: (input) =>
    completed(input, {
      name: { type: "string", default: "John Doe" },
      age: { type: "integer", default: 30 },
      score: { type: "number", default: 95.5 },
      status: { type: "string", enum: ["active", "inactive", "pending"], default: "active" },
      verified: { type: "boolean", default: true },
    }),
  test_elicitation_sep1330_enums: (input) => {
    const titled = (value: string, title: string) => ({ const: value, title });
    const choices = ["First", "Second", "Third"].map((nth, index) => titled(`value${index + 1}`, `${nth} Choice`));
    return completed(input, {
      untitledSingle: { type: "string", enum: ["option1", "option2", "option3"] },
      titledSingle: { type: "string", oneOf: choices.map((one) => titled(one.const, one.title.replace("Choice", "Option"))) },
      legacyEnum: { type: "string", enum: ["opt1", "opt2", "opt3"], enumNames: ["Option One", "Option Two", "Option Three"] },
      untitledMulti: { type: "array", items: { type: "string", enum: ["option1", "option2", "option3"] } },
      titledMulti: { type: "array", items: { anyOf: choices } },
    });
  },

  // Tasks: a call that takes more than half a second becomes one
  greet: ({ name }) => `Hello, ${name}!`,
  slow_compute: async ({ seconds, label }) => {
    await pause((seconds ?? 0) * 1000);
    return `computed ${label}`;
  },
  failing_job: async () => {
    await pause(1000);
    throw new Error("This job always fails");
  },
  confirm_delete: async (input) => {
    await pause(1000);
    const given = accepted(input, "confirm");
    return given ? `deleted ${input.filename}` : ask({ confirm: elicit("Delete?", { confirm: { type: "boolean" } }) });
  },
  multi_input: async (input) => {
    await pause(1000);
    const given = ["first", "second"].every((key) => accepted(input, key));
    return given ? "both received" : ask({ first: name, second: name });
  },
  test_tool_with_task: async (input) => {
    const given = accepted(input, "user_name");
    if (!given) return ask({ user_name: name });
    await pause(1000);
    return `Hello, ${given.name}!`;
  },

  // Prompts and resources
  prompt_simple: () => "This is a simple prompt for testing.",
  prompt_with_arguments: ({ arg1, arg2 }) => `Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`,
  prompt_with_embedded_resource: ({ resourceUri }) => ({
    messages: [
      user({
        type: "resource",
        resource: { uri: resourceUri, mimeType: "text/plain", text: "Embedded resource content for testing." },
      }),
      user(text("Please process the embedded resource above.")),
    ],
  }),
  prompt_with_image: () => ({ messages: [user(image), user(text("Please analyze the image above."))] }),
  prompt_input_required: (input) => {
    const given = accepted(input, "user_context");
    const question = elicit("What context should the prompt use?", { context: { type: "string" } });
    return given ? `Use this context: ${given.context}` : ask({ user_context: question });
  },
  resource_static_text: () => "This is the content of the static text resource.",
  resource_static_binary: ({ uri }) => ({ contents: [{ uri, mimeType: "image/png", blob: PNG }] }),
  resource_template: ({ id }) => JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }),
};

function completed(input: Input, properties: Record<string, unknown>) {
  const answer = input.input_responses?.form;
  return answer
    ? `Elicitation completed: action=${answer.action}, content=${JSON.stringify(answer.content)}`
    : ask({ form: elicit("Please review the values", properties, []) });
}

export async function execute(input: Input, context: any): Promise<any> {
  return await TOOLS[TOOL](input, context);
}
