//! Who writes, and what that agent may beyond what every writer may.

use breadcrumb::{Identity, MAX_TAGS, Profile, Profiles, Role, StoreError, Violations, schema_names};
use uuid::Uuid;

const KEPT_BY_RUNNERS: [&str; 3] = [schema_names::TOOL_CATALOG, schema_names::TOOL_RUNNER, schema_names::SCHEDULE];
const CANCEL: &str = "cancel_scheduled_task";

#[derive(Debug, Clone, Copy)]
pub(crate) struct Author {
    pub(crate) agent: Uuid,
    pub(crate) profile: Profile,
    pub(crate) is_curator: bool,
    is_runner: bool,
}

impl Author {
    pub(crate) fn of(identity: &Identity) -> Self {
        Self {
            agent: identity.agent_id,
            profile: identity.profile,
            is_curator: identity.has(Role::Curator),
            is_runner: identity.has(Role::Runner),
        }
    }

    /// Whether a read of this agent's is one that a record's reads are counted by: not the runtime's own, which has the
    /// role runner and no more.
    pub(crate) fn reads_count(&self) -> bool {
        self.is_curator || !self.is_runner
    }

    /// Marks what an agent writes whose profile closes tools: the tags `profile:<name>` of the author, and those that
    /// stood there before. So a tool that the record triggers, or a tool that the record is, opens nothing to its author.
    pub(crate) fn mark(&self, tags: &mut Vec<String>, before: &[String]) -> Result<(), Violations> {
        if self.profile == Profile::Main {
            return Ok(());
        }
        let mut profiles = Profiles::of(self.profile);
        profiles.add_tags(before);
        for tag in profiles.tags() {
            if !tags.contains(&tag) {
                tags.push(tag);
            }
        }
        if tags.len() > MAX_TAGS {
            let own = self.profile;
            let message =
                format!("has no room for the mark of the profile {own}; at most {MAX_TAGS} are allowed with it");
            return Err(Violations::one("tags", message));
        }
        Ok(())
    }

    /// What is on offer and what will be fired is said by who runs it: readers take it at its word, and runners act on
    /// it under the profiles that stand in it. Deleting a schedule is cancelling it, whatever the way.
    pub(crate) fn refuse_what_runners_keep(&self, schema_name: Option<&str>) -> Result<(), StoreError> {
        let Some(kept) = KEPT_BY_RUNNERS.into_iter().find(|kept| schema_name == Some(*kept)) else { return Ok(()) };
        if !self.is_runner && !self.is_curator {
            return Err(StoreError::Forbidden(format!(
                "only a runner or a curator writes, changes or deletes a {kept}"
            )));
        }
        if kept == schema_names::SCHEDULE && !self.profile.allows(CANCEL) {
            return Err(StoreError::Forbidden(format!("the profile {} has no {CANCEL}", self.profile)));
        }
        Ok(())
    }
}
