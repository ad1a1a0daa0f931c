//! The schemas of the bodies of `POST /tools/{name}/invoke`, which differ by format.
//! (`rcrt_breadcrumb::ModelCall` reads and writes them.)

use std::borrow::Cow;

use rcrt_breadcrumb::ToolResponse;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        ArrayBuilder, ObjectBuilder, Ref, RefOr, Schema,
        schema::{AnyOfBuilder, SchemaType, Type},
    },
};

use crate::routes::invoke::Invocation;

type Schemas = Vec<(String, RefOr<Schema>)>;

/// The body of a call, in the requested format.
pub struct InvocationInFormat;

/// The body of its response, in the same format.
pub struct ResponseInFormat;

impl PartialSchema for InvocationInFormat {
    fn schema() -> RefOr<Schema> {
        one_of(&Invocation::name(), &calls())
    }
}

impl ToSchema for InvocationInFormat {
    fn name() -> Cow<'static, str> {
        "InvocationInFormat".into()
    }

    fn schemas(schemas: &mut Schemas) {
        schemas.push((Invocation::name().into_owned(), Invocation::schema()));
        Invocation::schemas(schemas);
        schemas.extend(calls().map(|(name, schema)| (name.to_owned(), schema)));
    }
}

impl PartialSchema for ResponseInFormat {
    fn schema() -> RefOr<Schema> {
        one_of(&ToolResponse::name(), &messages())
    }
}

impl ToSchema for ResponseInFormat {
    fn name() -> Cow<'static, str> {
        "ResponseInFormat".into()
    }

    fn schemas(schemas: &mut Schemas) {
        schemas.push((ToolResponse::name().into_owned(), ToolResponse::schema()));
        ToolResponse::schemas(schemas);
        schemas.extend(messages().map(|(name, schema)| (name.to_owned(), schema)));
    }
}

/// The clients take the first for the body without `?format=`.
fn one_of(usual: &str, others: &[(&'static str, RefOr<Schema>)]) -> RefOr<Schema> {
    let usual = AnyOfBuilder::new()
        .description(Some("In the format rcrt; openai; openai-responses; anthropic; or mcp."))
        .item(Ref::from_schema_name(usual));
    others.iter().fold(usual, |schema, (name, _)| schema.item(Ref::from_schema_name(*name))).into()
}

/// What a model writes.
fn calls() -> [(&'static str, RefOr<Schema>); 4] {
    let function = object("").property("name", name()).property("arguments", arguments()).required("name");
    let call = object("One of a message's `tool_calls`.")
        .property("type", kind("function"))
        .property("id", name())
        .property("function", function)
        .required("id")
        .required("function");
    let item = object("A `function_call` item of the Responses API.")
        .property("type", kind("function_call"))
        .property("call_id", name())
        .property("name", name())
        .property("arguments", arguments())
        .required("call_id")
        .required("name");
    let block = object("A `tool_use` block of an assistant's message.")
        .property("type", kind("tool_use"))
        .property("id", name())
        .property("name", name())
        .property("input", anything("The tool's input; `{}` when absent."))
        .required("id")
        .required("name");
    let params = object("The params of a `tools/call`.")
        .property("name", name())
        .property("arguments", anything("The tool's input; `{}` when absent."))
        .required("name");
    [
        ("OpenAiToolCall", call.into()),
        ("OpenAiFunctionCall", item.into()),
        ("AnthropicToolUse", block.into()),
        ("McpToolCall", params.into()),
    ]
}

/// What the model gets back, also if the tool failed.
fn messages() -> [(&'static str, RefOr<Schema>); 4] {
    let message = object("The next message. The text of a failure begins with its code.")
        .property("role", kind("tool"))
        .property("tool_call_id", text())
        .property("content", text());
    let item = object("The next item. The text of a failure begins with its code.")
        .property("type", kind("function_call_output"))
        .property("call_id", text())
        .property("output", text());
    let block = object("A block of the next user message.")
        .property("type", kind("tool_result"))
        .property("tool_use_id", text())
        .property("content", text())
        .property("is_error", ObjectBuilder::new().schema_type(Type::Boolean));
    let content = object("").property("type", kind("text")).property("text", text()).required("type").required("text");
    let result = object("The result of the `tools/call`.")
        .property("content", ArrayBuilder::new().items(content))
        .property("isError", ObjectBuilder::new().schema_type(Type::Boolean))
        .property("structuredContent", object("The output of the tool, if it is an object."));
    [
        ("OpenAiToolMessage", require(message, &["role", "tool_call_id", "content"])),
        ("OpenAiFunctionOutput", require(item, &["type", "call_id", "output"])),
        ("AnthropicToolResult", require(block, &["type", "tool_use_id", "content", "is_error"])),
        ("McpToolResult", require(result, &["content", "isError"])),
    ]
}

fn object(about: &str) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::Object).description((!about.is_empty()).then_some(about))
}

fn require(object: ObjectBuilder, members: &[&str]) -> RefOr<Schema> {
    members.iter().fold(object, |object, member| object.required(*member)).into()
}

fn text() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String)
}

/// The limits of [`rcrt_breadcrumb::ModelCall`].
fn name() -> ObjectBuilder {
    text().min_length(Some(1)).max_length(Some(200)).pattern(Some("\\S"))
}

fn kind(name: &str) -> ObjectBuilder {
    text().enum_values(Some([name]))
}

fn arguments() -> ObjectBuilder {
    ObjectBuilder::new()
        .schema_type(SchemaType::Array(vec![Type::String, Type::Object, Type::Null]))
        .description(Some("The tool's input as JSON text; `{}` when absent or empty."))
}

fn anything(about: &str) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(SchemaType::AnyValue).description(Some(about))
}
