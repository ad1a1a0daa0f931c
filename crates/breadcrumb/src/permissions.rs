//! What a tool asks to be allowed.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use utoipa::ToSchema;

/// RCRT's permission fields. Only `net` opens anything in the sandbox; the others are known so that a validator can
/// refuse them by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Permissions {
    #[schema(value_type = Object)]
    pub net: NetPermission,
    /// `false`, `true` or a list of paths.
    #[schema(value_type = Object)]
    pub read: Grant,
    #[schema(value_type = Object)]
    pub write: Grant,
    /// `false`, `true` or a list of names.
    #[schema(value_type = Object)]
    pub env: Grant,
    #[schema(value_type = Object)]
    pub run: Grant,
    #[schema(value_type = Object)]
    pub ffi: Grant,
    pub hrtime: bool,
}

/// Which hosts a tool may reach: `false`, `true` (every public host) or a list of `host` or `host:port`.
pub type NetPermission = Grant;

/// `false`, `true`, or a list of what is granted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Grant {
    #[default]
    None,
    All,
    Listed(Vec<String>),
}

impl Grant {
    /// Whether anything at all is granted.
    pub fn is_granted(&self) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::Listed(items) => !items.is_empty(),
        }
    }
}

impl Serialize for Grant {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::None => serializer.serialize_bool(false),
            Self::All => serializer.serialize_bool(true),
            Self::Listed(items) => items.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Grant {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Grant;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("false, true or a list of strings")
            }

            fn visit_bool<E>(self, granted: bool) -> Result<Grant, E> {
                Ok(if granted { Grant::All } else { Grant::None })
            }

            fn visit_unit<E>(self) -> Result<Grant, E> {
                Ok(Grant::None)
            }

            fn visit_seq<A: de::SeqAccess<'de>>(self, mut items: A) -> Result<Grant, A::Error> {
                let mut listed = Vec::new();
                while let Some(item) = items.next_element::<String>()? {
                    listed.push(item);
                }
                Ok(Grant::Listed(listed))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}
