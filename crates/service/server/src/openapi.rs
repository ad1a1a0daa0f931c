//! The OpenAPI 3.1 document, made from the route table: paths and schemas come from the handlers,
//! the callers of each from its [`Access`], and every operation gets the same shape of errors.

use std::sync::LazyLock;

use rcrt_breadcrumb::LargeResult;
use serde_json::{Value, json};
use utoipa::openapi::{
    ContentBuilder, InfoBuilder, OpenApi, OpenApiBuilder, Ref, RefOr, Required, ResponseBuilder,
    extensions::ExtensionsBuilder,
    path::{Operation, PathItem},
    security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme},
    tag::TagBuilder,
};
use utoipa::{PartialSchema, ToSchema};
use utoipa_axum::router::OpenApiRouter;

use crate::ServerState;
use crate::auth::access::{Access, role_names};
use crate::http::problem::{CODES, MEDIA_TYPE, ProblemDocument};
use crate::routes::{RouteEntry, table};

/// The document as JSON.
pub static TEXT: LazyLock<String> = LazyLock::new(|| document().to_json().unwrap_or_default());

/// The document as a value, for changes.
pub fn value() -> Value {
    serde_json::to_value(document()).unwrap_or_default()
}

/// The same, indented, for reading and comparing.
pub fn in_lines() -> String {
    document().to_pretty_json().unwrap_or_default() + "\n"
}

const TAGS: &[(&str, &str)] = &[
    ("auth", "Tokens."),
    ("breadcrumbs", "Records: create, read, change, delete, list, search."),
    ("acl", "Grants of access to records."),
    ("events", "One event for each change, resumable."),
    ("tools", "The offered tools, and calls in one round trip."),
    ("mcp", "The same tools, for clients of the Model Context Protocol."),
    ("a2a", "Calls as tasks of the protocol A2A 1.0, for other agents."),
    ("calls", "The state of a request, and the operations of runners."),
    ("secrets", "Encrypted values for tools."),
    ("agents", "The accounts of a tenant and their roles."),
    ("hygiene", "Deletion of expired records."),
    ("webhooks", "Events that are posted to URLs, and failed deliveries."),
    ("audit", "Who changed agents, grants, secrets and tools; and requests to other servers."),
    ("tenants", "Customers, each with its own records and agents."),
    ("operations", "Health, metrics, this description."),
];

/// The document without routes.
pub fn bare() -> OpenApi {
    OpenApiBuilder::new()
        .info(
            InfoBuilder::new()
                .title("RCRT tool runtime")
                .version(env!("CARGO_PKG_VERSION"))
                .description(Some(
                    "Write a `tool.request.v1` record, and exactly one `tool.response.v1` comes back; or call a tool \
                     in one round trip at `/tools/{name}/invoke`. Get a token \
                     from `/auth/token` and send it as `Authorization: Bearer …`. Refusals are RFC 9457 problem \
                     documents with a stable `code`.",
                ))
                .build(),
        )
        .tags(Some(
            TAGS.iter()
                .map(|(name, description)| TagBuilder::new().name(*name).description(Some(*description)).build()),
        ))
        .build()
}

fn document() -> OpenApi {
    let mut router = OpenApiRouter::<ServerState>::with_openapi(bare());
    for RouteEntry { access, route: (mut schemas, mut paths, handler) } in table() {
        for operation in paths.paths.values_mut().flat_map(operations) {
            complete(operation, access);
        }
        ProblemDocument::schemas(&mut schemas);
        schemas.push((ProblemDocument::name().into_owned(), ProblemDocument::schema()));
        // No schema refers to it, because an output can be anything.
        LargeResult::schemas(&mut schemas);
        schemas.push((LargeResult::name().into_owned(), LargeResult::schema()));
        router = router.routes((schemas, paths, handler));
    }
    let mut document = router.into_openapi();
    let components = document.components.get_or_insert_default();
    components.security_schemes.insert(
        "token".into(),
        RefOr::T(SecurityScheme::Http(
            Http::builder()
                .scheme(HttpAuthScheme::Bearer)
                .bearer_format("JWT")
                .description(Some("A token from /auth/token."))
                .build(),
        )),
    );
    document.extensions = Some(ExtensionsBuilder::new().add("x-problem-codes", codes()).build());
    document
}

fn operations(path: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    [&mut path.get, &mut path.put, &mut path.post, &mut path.delete, &mut path.patch].into_iter().flatten()
}

fn complete(operation: &mut Operation, access: Access) {
    let roles = access.roles();
    if !roles.is_empty() {
        operation.security = Some(vec![SecurityRequirement::new("token", Vec::<String>::new())]);
        let allowed = format!("Roles: {}.", role_names(&roles));
        operation.description = Some(match operation.description.take() {
            Some(text) if !text.is_empty() => format!("{text}\n\n{allowed}"),
            _ => allowed,
        });
        let list: Vec<&str> = roles.iter().map(|role| role.as_str()).collect();
        operation.extensions.get_or_insert_default().merge(ExtensionsBuilder::new().add("x-roles", list).build());
    }
    // utoipa takes it from the type: an `Option` would also describe `null`.
    if operation.operation_id.as_deref() == Some("publish_tool")
        && let Some(RefOr::T(body)) = &mut operation.request_body
    {
        body.required = Some(Required::False);
    }
    // OpenAPI requires a description of every response; the operation's summary is used for a
    // success.
    let done = operation.summary.clone().unwrap_or_else(|| "Done".into());
    for response in operation.responses.responses.values_mut() {
        if let RefOr::T(response) = response
            && response.description.is_empty()
        {
            response.description.clone_from(&done);
        }
    }
    let problem = ResponseBuilder::new()
        .description("Refused: a problem document that says why")
        .content(MEDIA_TYPE, ContentBuilder::new().schema(Some(Ref::from_schema_name(ProblemDocument::name()))).build())
        .build();
    operation.responses.responses.insert("default".into(), RefOr::T(problem));
}

fn codes() -> Value {
    CODES
        .iter()
        .map(|(code, status, title, advice)| {
            json!({"code": code, "status": status.as_u16(), "title": title, "advice": advice})
        })
        .collect()
}
