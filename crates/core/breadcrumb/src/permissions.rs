//! The permissions that a tool asks for in its definition.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use utoipa::ToSchema;

/// RCRT's permission fields, and `tools`. Only `net` and `tools` grant anything in the sandbox. The
/// others are parsed so that a validator can refuse them by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Permissions {
    #[schema(value_type = Object)]
    pub net: NetPermission,
    /// The tools that the tool's code can call: `false`, `true` (every tool that its caller can
    /// call) or a list of names.
    #[schema(value_type = Object)]
    pub tools: AccessList,
    /// `false`, `true` or a list of paths.
    #[schema(value_type = Object)]
    pub read: AccessList,
    #[schema(value_type = Object)]
    pub write: AccessList,
    /// `false`, `true` or a list of names.
    #[schema(value_type = Object)]
    pub env: AccessList,
    #[schema(value_type = Object)]
    pub run: AccessList,
    #[schema(value_type = Object)]
    pub ffi: AccessList,
    pub hrtime: bool,
}

/// The hosts that a tool can reach: `false`, `true` (every public host) or a list of `host` or
/// `host:port`.
pub type NetPermission = AccessList;

/// `false`, `true`, or a list of what is granted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum AccessList {
    #[default]
    None,
    All,
    Listed(Vec<String>),
}

impl AccessList {
    /// Whether this item is granted.
    pub fn grants(&self, item: &str) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::Listed(items) => items.iter().any(|one| one == item),
        }
    }

    /// Whether anything at all is granted.
    pub fn is_granted(&self) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::Listed(items) => !items.is_empty(),
        }
    }
}

impl Serialize for AccessList {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::None => serializer.serialize_bool(false),
            Self::All => serializer.serialize_bool(true),
            Self::Listed(items) => items.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for AccessList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = AccessList;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("false, true or a list of strings")
            }

            fn visit_bool<E>(self, granted: bool) -> Result<AccessList, E> {
                Ok(if granted { AccessList::All } else { AccessList::None })
            }

            fn visit_unit<E>(self) -> Result<AccessList, E> {
                Ok(AccessList::None)
            }

            fn visit_seq<A: de::SeqAccess<'de>>(self, mut items: A) -> Result<AccessList, A::Error> {
                let mut listed = Vec::new();
                while let Some(item) = items.next_element::<String>()? {
                    listed.push(item);
                }
                Ok(AccessList::Listed(listed))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}
