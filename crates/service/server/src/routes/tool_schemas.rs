//! The schemas of `/tools` responses, which differ by format. (`rcrt_breadcrumb::catalog` makes the
//! responses.)

use std::borrow::Cow;

use rcrt_breadcrumb::{Catalog, CatalogEntry};
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        ArrayBuilder, ObjectBuilder, Ref, RefOr, Schema,
        schema::{AnyOfBuilder, SchemaType, Type},
    },
};

use crate::routes::tool_ranking::RankedCatalog;

type Schemas = Vec<(String, RefOr<Schema>)>;

/// All tools, in the requested format.
pub struct ToolList;

/// One tool, in the requested format.
pub struct ToolInFormat;

impl PartialSchema for ToolList {
    fn schema() -> RefOr<Schema> {
        let list = |tool: RefOr<Schema>| ArrayBuilder::new().items(tool);
        AnyOfBuilder::new()
            .description(Some("In the format rcrt, openai, openai-responses, anthropic or mcp. With `for`, ranked."))
            .item(Ref::from_schema_name(Catalog::name()))
            .item(list(openai()))
            .item(list(openai_responses()))
            .item(list(anthropic()))
            .item(ObjectBuilder::new().property("tools", list(mcp())).required("tools"))
            .item(Ref::from_schema_name(RankedCatalog::name()))
            .into()
    }
}

impl ToSchema for ToolList {
    fn name() -> Cow<'static, str> {
        "ToolList".into()
    }

    fn schemas(schemas: &mut Schemas) {
        schemas.push((Catalog::name().into_owned(), Catalog::schema()));
        Catalog::schemas(schemas);
        schemas.push((RankedCatalog::name().into_owned(), RankedCatalog::schema()));
        RankedCatalog::schemas(schemas);
    }
}

impl PartialSchema for ToolInFormat {
    fn schema() -> RefOr<Schema> {
        AnyOfBuilder::new()
            .description(Some("In the format rcrt, openai, openai-responses, anthropic or mcp."))
            .item(Ref::from_schema_name(CatalogEntry::name()))
            .item(openai())
            .item(openai_responses())
            .item(anthropic())
            .item(mcp())
            .into()
    }
}

impl ToSchema for ToolInFormat {
    fn name() -> Cow<'static, str> {
        "ToolInFormat".into()
    }

    fn schemas(schemas: &mut Schemas) {
        schemas.push((CatalogEntry::name().into_owned(), CatalogEntry::schema()));
        CatalogEntry::schemas(schemas);
    }
}

/// `type` is always `function`.
fn function_type() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String).enum_values(Some(["function"]))
}

fn openai_responses() -> RefOr<Schema> {
    let members = [("name", Type::String), ("description", Type::String), ("parameters", Type::Object)];
    let function = ObjectBuilder::new().property("type", function_type()).required("type");
    members
        .into_iter()
        .fold(function, |object, (name, kind)| {
            object.property(name, ObjectBuilder::new().schema_type(SchemaType::Type(kind))).required(name)
        })
        .property("strict", ObjectBuilder::new().schema_type(Type::Boolean))
        .required("strict")
        .into()
}

fn openai() -> RefOr<Schema> {
    let function = object(&[("name", Type::String), ("description", Type::String), ("parameters", Type::Object)]);
    ObjectBuilder::new()
        .property("type", function_type())
        .property("function", function)
        .required("type")
        .required("function")
        .into()
}

fn anthropic() -> RefOr<Schema> {
    object(&[("name", Type::String), ("description", Type::String), ("input_schema", Type::Object)])
}

fn mcp() -> RefOr<Schema> {
    object(&[
        ("name", Type::String),
        ("description", Type::String),
        ("inputSchema", Type::Object),
        ("annotations", Type::Object),
    ])
}

/// An object with these members, all of which are required.
fn object(members: &[(&str, Type)]) -> RefOr<Schema> {
    let build = |object: ObjectBuilder, (name, kind): &(&str, Type)| {
        let member = ObjectBuilder::new().schema_type(SchemaType::Type(kind.clone()));
        object.property(*name, member).required(*name)
    };
    members.iter().fold(ObjectBuilder::new(), build).into()
}
