//! The values of secrets for a tool that runs from its file.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context;
use rcrt_breadcrumb::{AccessList, HostEntry, Permissions, ToolDefinition};
use rcrt_egress::{HeldSecret, Vault};

use crate::exit::Failure;

/// The values of a file, by name.
#[derive(Default)]
pub struct LocalSecrets(BTreeMap<String, String>);

impl LocalSecrets {
    pub fn read(file: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(file)
            .map_err(|error| Failure::Usage(format!("--secrets: {} cannot be read: {error}", file.display())))?;
        // The error of the parser would show a value of another type.
        let malformed = "is not a JSON object of texts; expected {\"NAME\": \"value\"}";
        let values: BTreeMap<String, String> = serde_json::from_str(&text)
            .map_err(|_| Failure::Usage(format!("--secrets: {} {malformed}", file.display())))?;
        match values.iter().find(|(_, value)| value.is_empty()) {
            Some((name, _)) => Err(Failure::Usage(format!("--secrets: the value of {name:?} is empty")).into()),
            None => Ok(Self(values)),
        }
    }

    pub fn names(&self) -> impl Iterator<Item = &String> {
        self.0.keys()
    }

    /// The tool's required secrets: handles of the values, and `example-NAME` for the others.
    pub fn vault(&self, definition: &ToolDefinition) -> anyhow::Result<Vault> {
        let hosts = hosts(&definition.permissions);
        let held = definition.required_secrets.iter().map(|name| match self.0.get(name) {
            // A handle is bound to hosts, and a tool that can reach every host names none.
            Some(value) => {
                let (value, hosts) = (value.clone(), hosts.clone());
                HeldSecret { name: name.clone(), value, readable: hosts.is_empty(), hosts }
            }
            None => {
                let value = format!("example-{name}");
                HeldSecret { name: name.clone(), value, hosts: Vec::new(), readable: true }
            }
        });
        Vault::new(held.collect()).context("the secrets cannot be redacted from the output")
    }
}

/// The hosts of `permissions.net`; none if it is true or false.
fn hosts(permissions: &Permissions) -> Vec<HostEntry> {
    let AccessList::Listed(entries) = &permissions.net else { return Vec::new() };
    entries.iter().filter_map(|entry| HostEntry::parse(entry).ok()).collect()
}
