//! The targets of links.

use std::collections::HashMap;

use super::package::MainPart;

/// The maximum length of an address in the text, in characters.
const MAX_ADDRESS: usize = 2000;

#[derive(Debug, Default)]
pub struct Links(HashMap<String, String>);

impl Links {
    pub fn of(main: &MainPart) -> Self {
        let links = main.relations.iter().filter(|relation| {
            relation.kind == "hyperlink" && relation.is_external && relation.target.chars().count() <= MAX_ADDRESS
        });
        Self(links.map(|relation| (relation.id.clone(), relation.target.clone())).collect())
    }

    pub fn address(&self, id: &str) -> Option<&str> {
        self.0.get(id).map(String::as_str)
    }
}
