//! Where a tool comes from.

use serde::{Deserialize, Serialize};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

/// What runs a tool: as text `native`, `sandbox`, `rest` or `mcp:<server>`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum ToolSource {
    /// An executor of the program itself.
    Native,
    /// The tool's own code, in a sandbox worker.
    Sandbox,
    /// One HTTP exchange that the tool's record describes.
    Rest,
    /// A tool of this MCP server.
    Mcp(String),
}

impl std::fmt::Display for ToolSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Native => f.write_str("native"),
            Self::Sandbox => f.write_str("sandbox"),
            Self::Rest => f.write_str("rest"),
            Self::Mcp(server) => write!(f, "mcp:{server}"),
        }
    }
}

impl std::str::FromStr for ToolSource {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "native" => Ok(Self::Native),
            "sandbox" => Ok(Self::Sandbox),
            "rest" => Ok(Self::Rest),
            other => match other.strip_prefix("mcp:") {
                Some(server) if !server.is_empty() => Ok(Self::Mcp(server.to_owned())),
                _ => Err(format!("{text:?} is no source; the sources are native, sandbox, rest and mcp:<server>")),
            },
        }
    }
}

/// As it is written: a plain string.
impl PartialSchema for ToolSource {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .pattern(Some("^(native|sandbox|rest|mcp:.+)$"))
            .description(Some("What runs a tool: native, sandbox, rest or mcp:<server>."))
            .into()
    }
}

impl ToSchema for ToolSource {}

impl From<ToolSource> for String {
    fn from(source: ToolSource) -> Self {
        source.to_string()
    }
}

impl TryFrom<String> for ToolSource {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}
