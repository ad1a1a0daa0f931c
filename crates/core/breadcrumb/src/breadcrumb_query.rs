//! What to list.

use serde::{Deserialize, Serialize};

use crate::{Selector, Violations};

/// The page size of a list when the caller gives no limit.
pub const DEFAULT_PAGE: u32 = 100;
/// The most rows one list call returns.
pub const MAX_PAGE: u32 = 1000;

/// What to list: the records that match the selector, newest change first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BreadcrumbQuery {
    pub selector: Selector,
    /// 1 to [`MAX_PAGE`].
    pub limit: u32,
    pub offset: u32,
    pub include_context: bool,
}

impl Default for BreadcrumbQuery {
    fn default() -> Self {
        Self { selector: Selector::default(), limit: DEFAULT_PAGE, offset: 0, include_context: false }
    }
}

impl BreadcrumbQuery {
    /// All records with this tag, contexts included.
    pub fn tagged(tag: impl Into<String>) -> Self {
        Self {
            selector: Selector { all_tags: vec![tag.into()], ..Selector::default() },
            include_context: true,
            ..Self::default()
        }
    }

    /// All records of this schema, contexts included.
    pub fn of_schema(schema_name: impl Into<String>) -> Self {
        Self {
            selector: Selector { schema_name: Some(schema_name.into()), ..Selector::default() },
            include_context: true,
            ..Self::default()
        }
    }

    pub fn check(&self) -> Result<(), Violations> {
        let mut found = Violations::default();
        if !(1..=MAX_PAGE).contains(&self.limit) {
            found.add("limit", format!("must be from 1 to {MAX_PAGE}"));
        }
        if let Err(more) = self.selector.check() {
            found.0.extend(more.0);
        }
        found.into_result()
    }
}
