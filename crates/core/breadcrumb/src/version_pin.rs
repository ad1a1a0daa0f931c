//! The version of a tool that a request names.

use serde_json::{Map, Value};

use crate::breadcrumb::is_definition_hash;
use crate::{RequestKind, Violations};

/// Which version of its tool a request needs. Without one, it gets the version that is offered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VersionPin {
    /// The version of the tool's record (`version`), as `metadata.tool_version` of a response.
    Number(i64),
    /// The newest version with this definition (`definition_hash`).
    Definition(String),
}

impl VersionPin {
    pub(crate) fn check(context: &Map<String, Value>, found: &mut Violations) {
        let named = |key: &str| context.get(key).filter(|value| !value.is_null());
        if let Some(number) = named("version")
            && number.as_i64().is_none_or(|number| number < 1)
        {
            found.add(
                "context.version",
                "must be a whole number from 1: the version of the tool's record, as metadata.tool_version of a response",
            );
        }
        if let Some(hash) = named("definition_hash") {
            if !hash.as_str().is_some_and(is_definition_hash) {
                found.add("context.definition_hash", "must be sha256: and 64 hexadecimal digits in lower case");
            }
            if named("version").is_some() {
                found.add("context.definition_hash", "cannot be used together with version; name one of them");
            }
        }
    }

    /// The pin of a request's context that passed the check.
    pub(crate) fn of(kind: RequestKind, context: &Map<String, Value>) -> Option<Self> {
        if kind != RequestKind::Call {
            return None;
        }
        let number = || context.get("version").and_then(Value::as_i64).map(Self::Number);
        let hash = || context.get("definition_hash").and_then(Value::as_str).map(|hash| Self::Definition(hash.into()));
        number().or_else(hash)
    }

    /// Whether a request's context names a version, correct or not.
    pub fn is_named_in(context: &Map<String, Value>) -> bool {
        ["version", "definition_hash"].iter().any(|key| context.get(*key).is_some_and(|value| !value.is_null()))
    }

    /// Whether this is the version.
    pub fn matches(&self, version: i64, definition_hash: &str) -> bool {
        match self {
            Self::Number(number) => *number == version,
            Self::Definition(hash) => hash == definition_hash,
        }
    }
}

/// For messages: `version 3`, `definition sha256:…`.
impl std::fmt::Display for VersionPin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(number) => write!(f, "version {number}"),
            Self::Definition(hash) => write!(f, "definition {hash}"),
        }
    }
}
