//! Secrets, as they are named; values leave the store only through an audited decryption.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::Violations;

/// A secret without its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SecretInfo {
    pub id: Uuid,
    pub name: String,
    /// Starts at 1 and grows with each rotation.
    pub version: i64,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewSecret {
    /// A letter or `_`, then letters, digits and `_`; at most 200 characters; unique in its tenant.
    pub name: String,
    /// 1 to 65,536 bytes.
    pub value: String,
}

impl NewSecret {
    pub fn check(&self) -> Result<(), Violations> {
        let mut found = Violations::default();
        let mut characters = self.name.chars();
        let starts_well = characters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
        if !starts_well || !characters.all(|c| c.is_ascii_alphanumeric() || c == '_') || self.name.len() > 200 {
            found.add("name", "must be a letter or _, then letters, digits and _, at most 200 in all");
        }
        if let Err(more) = Self::check_value(&self.value) {
            found.0.extend(more.0);
        }
        found.into_result()
    }

    pub fn check_value(value: &str) -> Result<(), Violations> {
        if (1..=65_536).contains(&value.len()) {
            Ok(())
        } else {
            Err(Violations::one("value", "must have 1 to 65536 bytes"))
        }
    }
}

impl std::fmt::Debug for NewSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NewSecret").field("name", &self.name).finish_non_exhaustive()
    }
}
