"""A model's calls of tools and the messages that it gets back, as its API has them."""

from __future__ import annotations

from typing import Any, Literal, Protocol, TypedDict

#: ``openai`` is the Chat Completions API, ``openai-responses`` the Responses API.
ModelFormat = Literal["openai", "openai-responses", "anthropic", "mcp"]


class ModelObject(Protocol):
    """A Pydantic object, such as a tool call in the libraries of OpenAI, Anthropic and MCP."""

    def model_dump(self) -> dict[str, Any]: ...


class OpenAiFunction(TypedDict):
    name: str
    arguments: str


class _OpenAiCall(TypedDict):
    id: str
    function: OpenAiFunction


class OpenAiCall(_OpenAiCall, total=False):
    """One of a message's ``tool_calls``."""

    type: Literal["function"]


class _OpenAiItemCall(TypedDict):
    call_id: str
    name: str
    arguments: str


class OpenAiItemCall(_OpenAiItemCall, total=False):
    """An item of the Responses API."""

    type: Literal["function_call"]
    id: str


class AnthropicCall(TypedDict):
    """A content block of an assistant's message."""

    type: Literal["tool_use"]
    id: str
    name: str
    input: Any


class _McpCall(TypedDict):
    name: str


class McpCall(_McpCall, total=False):
    """The params of ``tools/call``."""

    arguments: dict[str, Any]


class OpenAiMessage(TypedDict):
    role: Literal["tool"]
    tool_call_id: str
    content: str


class OpenAiItem(TypedDict):
    type: Literal["function_call_output"]
    call_id: str
    output: str


class AnthropicBlock(TypedDict):
    """A content block of the next user message."""

    type: Literal["tool_result"]
    tool_use_id: str
    content: str
    is_error: bool


class McpText(TypedDict):
    type: Literal["text"]
    text: str


class _McpResult(TypedDict):
    content: list[McpText]
    isError: bool


class McpResult(_McpResult, total=False):
    """The result of ``tools/call``."""

    structuredContent: dict[str, Any]


class OpenAiToolFunction(TypedDict):
    name: str
    description: str
    parameters: dict[str, Any]


class OpenAiTool(TypedDict):
    """An element of ``tools`` in a request."""

    type: Literal["function"]
    function: OpenAiToolFunction


class OpenAiResponsesTool(TypedDict):
    """An element of ``tools`` in a request to the Responses API."""

    type: Literal["function"]
    name: str
    description: str
    parameters: dict[str, Any]
    strict: bool


class AnthropicTool(TypedDict):
    """An element of ``tools`` in a request."""

    name: str
    description: str
    input_schema: dict[str, Any]
