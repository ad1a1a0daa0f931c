//! The source of a tool: what provides it.

use serde::{Deserialize, Serialize};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

/// What runs a tool. As text: `native`, `sandbox`, `rest`, `mcp:<server>`, or the name of another
/// kind of executor.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum ToolSource {
    /// An executor in the program itself.
    Native,
    /// The tool's own code, in a sandbox worker.
    Sandbox,
    /// One HTTP exchange that the tool's record describes.
    Rest,
    /// A tool on this MCP server.
    Mcp(String),
    /// Another kind of executor, by its name: 1 to 50 lower-case letters, digits, `_` and `-`,
    /// starting with a letter.
    Other(String),
}

const MAX_KIND: usize = 50;

fn is_kind(text: &str) -> bool {
    text.len() <= MAX_KIND
        && text.starts_with(|first: char| first.is_ascii_lowercase())
        && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-'))
}

impl ToolSource {
    /// The source of the tools of a native executor. An unknown kind becomes its own source, so
    /// that a profile with an allow list denies it.
    pub fn of_executor(kind: &str) -> Self {
        match kind {
            "builtin" => Self::Native,
            "http" | "rest" => Self::Rest,
            // These names belong to other executors.
            "native" | "sandbox" | "mcp" => Self::Other("unknown".into()),
            other if is_kind(other) => Self::Other(other.into()),
            _ => Self::Other("unknown".into()),
        }
    }

    /// The source without the server's name: `mcp` for every MCP server.
    pub fn kind(&self) -> &str {
        match self {
            Self::Native => "native",
            Self::Sandbox => "sandbox",
            Self::Rest => "rest",
            Self::Mcp(_) => "mcp",
            Self::Other(kind) => kind,
        }
    }
}

impl std::fmt::Display for ToolSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Mcp(server) => write!(f, "mcp:{server}"),
            other => f.write_str(other.kind()),
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
                None if is_kind(other) && other != "mcp" => Ok(Self::Other(other.to_owned())),
                _ => Err(format!(
                    "{text:?} is not a valid source; expected native, sandbox, rest, mcp:<server> or the name of another kind \
                     of executor"
                )),
            },
        }
    }
}

/// The schema of its text form, a plain string.
impl PartialSchema for ToolSource {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .pattern(Some("^(mcp:.+|[a-z][a-z0-9_-]{0,49})$"))
            .description(Some(
                "What runs a tool: native, sandbox, rest, mcp:<server> or the name of another kind of executor.",
            ))
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
