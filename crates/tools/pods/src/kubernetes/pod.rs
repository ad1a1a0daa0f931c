//! A pod as the API server describes it, as far as it matters here.

use std::collections::BTreeMap;

use serde::Deserialize;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Pod {
    pub metadata: Metadata,
    pub status: Status,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct PodList {
    pub metadata: ListMetadata,
    pub items: Vec<Pod>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ListMetadata {
    /// Where the next page begins; empty after the last one.
    #[serde(rename = "continue")]
    pub next: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Metadata {
    pub name: String,
    pub uid: String,
    pub resource_version: String,
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Status {
    pub phase: String,
    /// Why the whole pod ended, such as `Evicted`.
    pub reason: String,
    pub message: String,
    pub conditions: Vec<Condition>,
    pub init_container_statuses: Vec<Container>,
    pub container_statuses: Vec<Container>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Condition {
    pub status: String,
    pub reason: String,
    pub message: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Container {
    pub name: String,
    pub state: State,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct State {
    pub waiting: Option<Waiting>,
    pub running: Option<serde_json::Value>,
    pub terminated: Option<Terminated>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Waiting {
    pub reason: String,
    pub message: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Terminated {
    pub exit_code: i32,
    pub reason: String,
    pub message: String,
}

/// Reasons to wait that do not pass by themselves.
const HOPELESS: [&str; 3] = ["ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"];

impl Pod {
    fn containers(&self) -> impl Iterator<Item = &Container> {
        self.status.init_container_statuses.iter().chain(&self.status.container_statuses)
    }

    /// How a container ended.
    pub fn terminated(&self, name: &str) -> Option<&Terminated> {
        self.containers().find(|container| container.name == name)?.state.terminated.as_ref()
    }

    /// Whether one of its containers has started.
    pub fn has_begun(&self) -> bool {
        self.is_over() || self.containers().any(|one| one.state.running.is_some() || one.state.terminated.is_some())
    }

    /// Whether nothing runs in it any more.
    pub fn is_over(&self) -> bool {
        matches!(self.status.phase.as_str(), "Succeeded" | "Failed")
            || !self.status.container_statuses.is_empty()
                && self.status.container_statuses.iter().all(|one| one.state.terminated.is_some())
    }

    /// Why it will never start.
    pub fn hopeless(&self) -> Option<String> {
        let mut waiting = self.containers().filter_map(|one| one.state.waiting.as_ref());
        let never = waiting.find(|waiting| HOPELESS.contains(&waiting.reason.as_str()))?;
        Some(join(&never.reason, &never.message))
    }

    /// What a pod that has not started waits for.
    pub fn waits_for(&self) -> String {
        let waiting =
            self.containers().filter_map(|one| one.state.waiting.as_ref()).map(|one| (&one.reason, &one.message));
        let unmet = self.status.conditions.iter().filter(|one| one.status == "False");
        let unmet = unmet.map(|one| (&one.reason, &one.message));
        // `ContainerCreating` says nothing.
        let mut reasons = waiting.chain(unmet).filter(|(_, message)| !message.is_empty());
        reasons
            .next()
            .map_or_else(|| "no node has reported anything".to_owned(), |(reason, message)| join(reason, message))
    }

    /// Why a pod failed as a whole, such as `Evicted: the node was low on memory`.
    pub fn end(&self) -> String {
        join(&self.status.reason, &self.status.message)
    }
}

fn join(reason: &str, message: &str) -> String {
    match (reason, message) {
        ("", "") => "no reason is given".to_owned(),
        (one, "") | ("", one) => one.to_owned(),
        (reason, message) => format!("{reason}: {message}"),
    }
}
