//! The vault: one call's secrets. A tool gets a handle instead of a value. The egress gate replaces
//! the handle by the value in requests to the hosts that the secret is bound to. The value is
//! redacted from everything that is returned to the tool or published.
//!
//! The vault does no I/O: the egress gate passes it each request and each response.

mod encoding;
mod forms;
mod handle;
mod redaction;
mod search;
mod substitution;
mod text_encoding;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use rcrt_breadcrumb::HostEntry;

pub use redaction::Redaction;
pub use search::Unsearchable;
pub(crate) use substitution::Destination;

use handle::Handles;

/// A shorter readable value occurs too often by chance to be redacted from output.
const MIN_READABLE_BYTES: usize = 8;

/// A secret that a call was given.
#[derive(Clone, PartialEq, Eq)]
pub struct HeldSecret {
    /// As in the tool's `required_secrets`: letters, digits and `_`.
    pub name: String,
    pub value: String,
    /// Where the gate can send the value. Without an entry nowhere, but a readable value anywhere.
    pub hosts: Vec<HostEntry>,
    /// The tool gets the value itself.
    pub readable: bool,
}

impl fmt::Debug for HeldSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeldSecret").field("name", &self.name).field("readable", &self.readable).finish_non_exhaustive()
    }
}

/// The secrets of one call of one tool. Its handles mean nothing in any other call.
#[derive(Default)]
pub struct Vault {
    /// Sorted by name.
    kept: Vec<VaultEntry>,
    /// In the order of `kept`.
    handles: Option<Handles>,
    inward: Arc<Redaction>,
    outward: Arc<Redaction>,
}

struct VaultEntry {
    secret: HeldSecret,
    handle: String,
}

impl Vault {
    /// Creates a new handle for each secret. If two have the same name, the last one counts. It
    /// fails if the search for the values cannot be built: a call whose output cannot be redacted
    /// does not run.
    pub fn new(secrets: Vec<HeldSecret>) -> Result<Self, Unsearchable> {
        let by_name: BTreeMap<String, HeldSecret> =
            secrets.into_iter().map(|secret| (secret.name.clone(), secret)).collect();
        let kept: Vec<VaultEntry> =
            by_name.into_values().map(|secret| VaultEntry { handle: handle::new(&secret.name), secret }).collect();
        let secrets = || kept.iter().map(|kept| &kept.secret);
        let inward = Arc::new(Redaction::of(secrets().filter(|secret| !secret.readable))?);
        let is_kept_inside = |secret: &&HeldSecret| !secret.readable || secret.value.len() >= MIN_READABLE_BYTES;
        let outward = if secrets().any(|secret| secret.readable) {
            Arc::new(Redaction::of(secrets().filter(is_kept_inside))?)
        } else {
            inward.clone()
        };
        let handles = Handles::new(kept.iter().map(|kept| kept.handle.as_str()));
        Ok(Self { kept, handles, inward, outward })
    }

    /// What the tool sees under each name: a handle, or the value of a readable secret.
    pub fn shown(&self) -> BTreeMap<String, String> {
        self.kept.iter().map(|kept| (kept.secret.name.clone(), kept.shown().to_owned())).collect()
    }

    /// What the tool sees under this name.
    pub fn shown_as(&self, name: &str) -> Option<&str> {
        self.kept.iter().find(|kept| kept.secret.name == name).map(VaultEntry::shown)
    }

    /// The handle that the gate replaces, also if the tool can read the value.
    pub fn handle(&self, name: &str) -> Option<&str> {
        self.kept.iter().find(|kept| kept.secret.name == name).map(|kept| kept.handle.as_str())
    }

    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Redacts the values from a text that the tool publishes.
    pub fn cleared<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.outward.text(text)
    }

    /// Whether there is a value that the tool must not see.
    pub(crate) fn hides(&self) -> bool {
        self.kept.iter().any(|kept| !kept.secret.readable)
    }

    /// For what the tool sees: redacts the values that it cannot read.
    pub fn inward(&self) -> &Arc<Redaction> {
        &self.inward
    }

    /// For what the tool publishes: results, errors, console lines, records.
    pub fn outward(&self) -> &Arc<Redaction> {
        &self.outward
    }
}

impl VaultEntry {
    fn shown(&self) -> &str {
        if self.secret.readable { &self.secret.value } else { &self.handle }
    }
}

impl fmt::Debug for Vault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.kept.iter().map(|kept| &kept.secret)).finish()
    }
}
