/** A model's calls of tools and the messages that it gets back, as its API has them. */

/** `openai` is the Chat Completions API, `openai-responses` the Responses API. */
export type ModelFormat = "openai" | "openai-responses" | "anthropic" | "mcp";

/** One of a message's `tool_calls`. */
export interface OpenAiCall {
  id: string;
  type?: "function";
  function: { name: string; arguments?: string };
}

/** An item of the Responses API. */
export interface OpenAiItemCall {
  type?: "function_call";
  call_id: string;
  name: string;
  arguments?: string;
}

/** A content block of an assistant's message. */
export interface AnthropicCall {
  type: "tool_use";
  id: string;
  name: string;
  input?: unknown;
}

/** The params of `tools/call`. */
export interface McpCall {
  name: string;
  arguments?: Record<string, unknown>;
}

export type ModelCall = OpenAiCall | OpenAiItemCall | AnthropicCall | McpCall;

export interface OpenAiMessage {
  role: "tool";
  tool_call_id: string;
  content: string;
}

export interface OpenAiItem {
  type: "function_call_output";
  call_id: string;
  output: string;
}

/** A content block of the next user message. */
export interface AnthropicBlock {
  type: "tool_result";
  tool_use_id: string;
  content: string;
  is_error: boolean;
}

/** The result of `tools/call`. */
export type McpResult = {
  content: { type: "text"; text: string }[];
  structuredContent?: Record<string, unknown>;
  isError: boolean;
};

/** An element of `tools` in a request. */
export interface OpenAiTool {
  type: "function";
  function: { name: string; description: string; parameters: Record<string, unknown> };
}

/** An element of `tools` in a request to the Responses API. */
export interface OpenAiResponsesTool {
  type: "function";
  name: string;
  description: string;
  parameters: Record<string, unknown>;
  strict: boolean;
}

/** An element of `tools` in a request. */
export interface AnthropicTool {
  name: string;
  description: string;
  input_schema: { type: "object"; [keyword: string]: unknown };
}

/** The result of `tools/list`. */
export type McpTools = {
  tools: {
    name: string;
    title?: string;
    description: string;
    inputSchema: { type: "object"; [keyword: string]: unknown };
    annotations: Record<string, unknown>;
  }[];
};
