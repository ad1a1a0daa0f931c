//! The agent that acts, the agent on whose behalf it acts, and what it can do beyond every writer.

use breadcrumb::{
    Breadcrumb, CURATORS_TOOL_TAG, Identity, MAX_TAGS, NewBreadcrumb, Profile, Profiles, Role, StoreError, Violations,
    Visibility, schema_names,
};
use uuid::Uuid;

const KEPT_BY_RUNNERS: [&str; 3] = [schema_names::TOOL_CATALOG, schema_names::TOOL_RUNNER, schema_names::SCHEDULE];
const CANCEL: &str = "cancel_scheduled_task";

#[derive(Debug, Clone, Copy)]
pub(crate) struct Actor {
    pub(crate) agent: Uuid,
    /// The agent on whose behalf a runner acts.
    pub(crate) on_behalf_of: Uuid,
    pub(crate) profile: Profile,
    pub(crate) is_curator: bool,
    is_runner: bool,
}

impl Actor {
    pub(crate) fn of(identity: &Identity) -> Self {
        Self {
            agent: identity.agent_id,
            on_behalf_of: identity.agent_id,
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

    /// A runner that acts in another agent's name, and is a curator no more.
    pub(crate) fn acting_for(self, on_behalf_of: Uuid) -> Self {
        Self { on_behalf_of, is_curator: self.is_curator && on_behalf_of == self.agent, ..self }
    }

    /// An agent has no role in another tenant.
    pub(crate) fn as_guest(self) -> Self {
        Self { is_curator: false, is_runner: false, ..self }
    }

    /// A runner at its own work, and nothing beside it.
    pub(crate) fn is_mere_runner(self) -> bool {
        self.is_runner && !self.is_curator && self.on_behalf_of == self.agent
    }

    pub(crate) fn is_runner(self) -> bool {
        self.is_runner
    }

    /// Whether its own roles let it see all of its tenant.
    pub(crate) fn sees_all(self) -> bool {
        (self.is_curator || self.is_runner) && self.on_behalf_of == self.agent
    }

    /// Who a new record is of. What a runner does in another's name is its own, but for what only the other may see, and
    /// for requests and tools, which must not be taken for the runner's.
    pub(crate) fn creator_of(self, record: &NewBreadcrumb) -> Uuid {
        let is_request = record.schema_name.as_deref() == Some(schema_names::TOOL_REQUEST);
        if is_request || is_tool(record) || record.visibility == Visibility::Private {
            self.on_behalf_of
        } else {
            self.agent
        }
    }

    /// Who has written a version of a record. A tool is set off in the name of who wrote it: that is never the runner
    /// that only did it for another: a runner sees all.
    pub(crate) fn changer_of(self, record: &NewBreadcrumb) -> Uuid {
        if is_tool(record) { self.on_behalf_of } else { self.agent }
    }

    /// Only the creator of a record and curators decide who sees it and how much of it.
    pub(crate) fn refuse_to_open(self, old: &Breadcrumb, new: &NewBreadcrumb) -> Result<(), StoreError> {
        let is_same = old.visibility == new.visibility && old.sensitivity == new.sensitivity;
        if is_same || self.is_curator || old.created_by == Some(self.on_behalf_of) {
            return Ok(());
        }
        let why = "only a curator, or who created the record, changes its visibility or sensitivity";
        Err(StoreError::Forbidden(why.into()))
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

    /// Sets [`CURATORS_TOOL_TAG`] on a `tool.code.v1` that a curator writes, and takes it from one that anybody else does.
    pub(crate) fn mark_tool(&self, record: &mut NewBreadcrumb) -> Result<(), Violations> {
        if record.schema_name.as_deref() != Some(schema_names::TOOL_CODE) {
            return Ok(());
        }
        record.tags.retain(|tag| tag != CURATORS_TOOL_TAG);
        if self.is_curator {
            record.tags.push(CURATORS_TOOL_TAG.to_owned());
        }
        if record.tags.len() > MAX_TAGS {
            let message =
                format!("has no room for the tag {CURATORS_TOOL_TAG}; at most {MAX_TAGS} are allowed with it");
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
        if kept == schema_names::SCHEDULE && self.profile.closes_name(CANCEL) {
            return Err(StoreError::Forbidden(format!("the profile {} has no {CANCEL}", self.profile)));
        }
        Ok(())
    }
}

fn is_tool(record: &NewBreadcrumb) -> bool {
    matches!(record.schema_name.as_deref(), Some(schema_names::TOOL_CODE | schema_names::TOOL_V1))
}
