//! A filter of tools, by source and by name.

use std::collections::BTreeSet;

use crate::ToolSource;

/// Every source.
const ANY: &str = "*";

/// Denied names and sources take precedence. Any other tool must be allowed by its name or by its
/// source. A source is named in full (`mcp:weather`) or by its kind (`mcp`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolFilter {
    allowed_sources: BTreeSet<String>,
    denied_sources: BTreeSet<String>,
    allowed_names: BTreeSet<String>,
    denied_names: BTreeSet<String>,
}

impl ToolFilter {
    /// Allows no tool.
    pub fn nothing() -> Self {
        Self::default()
    }

    /// Allows every tool, including tools of future sources.
    pub fn everything() -> Self {
        Self::default().allow_sources(&[ANY])
    }

    /// `*` allows every source.
    #[must_use]
    pub fn allow_sources(mut self, sources: &[&str]) -> Self {
        self.allowed_sources.extend(sources.iter().map(|one| (*one).to_owned()));
        self
    }

    #[must_use]
    pub fn deny_sources(mut self, sources: &[&str]) -> Self {
        self.denied_sources.extend(sources.iter().map(|one| (*one).to_owned()));
        self
    }

    /// Allows these tools even if their source is not allowed.
    #[must_use]
    pub fn allow_names(mut self, names: &[&str]) -> Self {
        self.allowed_names.extend(names.iter().map(|one| (*one).to_owned()));
        self
    }

    #[must_use]
    pub fn deny_names(mut self, names: &[&str]) -> Self {
        self.denied_names.extend(names.iter().map(|one| (*one).to_owned()));
        self
    }

    pub fn allows(&self, name: &str, source: &ToolSource) -> bool {
        let names_source = |sources: &BTreeSet<String>| {
            let is_whole = matches!(source, ToolSource::Mcp(_)) && sources.contains(&source.to_string());
            is_whole || sources.contains(source.kind())
        };
        !self.denies_name(name)
            && !names_source(&self.denied_sources)
            && (self.allowed_names.contains(name)
                || self.allowed_sources.contains(ANY)
                || names_source(&self.allowed_sources))
    }

    /// Every source that the filter names.
    pub fn named_sources(&self) -> impl Iterator<Item = &str> {
        self.allowed_sources.union(&self.denied_sources).map(String::as_str).filter(|source| *source != ANY)
    }

    pub fn denies_name(&self, name: &str) -> bool {
        self.denied_names.contains(name)
    }
}
