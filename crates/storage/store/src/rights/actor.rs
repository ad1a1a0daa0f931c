//! The agent that acts, the agent on whose behalf it acts, and what it can do beyond any writer.

use rcrt_breadcrumb::{
    Breadcrumb, CURATORS_TOOL_TAG, Identity, MAX_TAGS, NewBreadcrumb, Profile, Profiles, RequestKind, Role, StoreError,
    Violations, Visibility, schema_names,
};
use uuid::Uuid;

const MAINTAINED_BY_RUNNERS: [&str; 3] =
    [schema_names::TOOL_CATALOG, schema_names::TOOL_RUNNER, schema_names::SCHEDULE];
const CANCEL: &str = "cancel_scheduled_task";

#[derive(Debug, Clone, Copy)]
pub(crate) struct Actor {
    pub(crate) agent: Uuid,
    /// The agent on whose behalf a runner acts.
    pub(crate) on_behalf_of: Uuid,
    pub(crate) profile: Profile,
    pub(crate) is_curator: bool,
    is_runner: bool,
    /// Can create requests and nothing else.
    pub(crate) writes_only_requests: bool,
    /// Sees its own requests and their responses and nothing else.
    pub(crate) reads_only_own_calls: bool,
}

impl Actor {
    pub(crate) fn of(identity: &Identity) -> Self {
        Self {
            agent: identity.agent_id,
            on_behalf_of: identity.agent_id,
            profile: identity.profile,
            is_curator: identity.has(Role::Curator),
            is_runner: identity.has(Role::Runner),
            writes_only_requests: Role::write_only_requests(&identity.roles),
            reads_only_own_calls: Role::read_only_own_calls(&identity.roles),
        }
    }

    /// Whether this actor's reads count toward a record's read limit. Reads by the runtime itself,
    /// which has only the role `runner`, do not count.
    pub(crate) fn reads_count(&self) -> bool {
        self.is_curator || !self.is_runner
    }

    /// Acts on behalf of another agent. A curator loses that role while doing so.
    pub(crate) fn on_behalf_of(self, on_behalf_of: Uuid) -> Self {
        Self { on_behalf_of, is_curator: self.is_curator && on_behalf_of == self.agent, ..self }
    }

    /// An agent has no role in another tenant.
    pub(crate) fn as_guest(self) -> Self {
        Self { is_curator: false, is_runner: false, ..self }
    }

    /// A caller can only create requests. What tools do on its behalf, runners write.
    pub(crate) fn refuse_writes_of_callers(self, schema_name: Option<&str>) -> Result<(), StoreError> {
        if !self.writes_only_requests || schema_name == Some(schema_names::TOOL_REQUEST) {
            return Ok(());
        }
        let why = format!(
            "an agent with the role caller can create a {} and change nothing else; use an agent with the role emitter",
            schema_names::TOOL_REQUEST
        );
        Err(StoreError::Forbidden(why))
    }

    /// A runner on its own behalf, with no other role.
    pub(crate) fn is_plain_runner(self) -> bool {
        self.is_runner && !self.is_curator && self.on_behalf_of == self.agent
    }

    pub(crate) fn is_runner(self) -> bool {
        self.is_runner
    }

    /// Whether its own roles let it see all records of its tenant.
    pub(crate) fn sees_all(self) -> bool {
        (self.is_curator || self.is_runner) && self.on_behalf_of == self.agent
    }

    /// The creator of a new record. A runner that acts for another agent is the creator, except of
    /// private records, which only the other agent can see, and of requests and tools, which must
    /// not count as the runner's.
    pub(crate) fn creator_of(self, record: &NewBreadcrumb) -> Uuid {
        let is_request = RequestKind::of(record.schema_name.as_deref()).is_some();
        if is_request || is_tool(record) || record.visibility == Visibility::Private {
            self.on_behalf_of
        } else {
            self.agent
        }
    }

    /// The author of a version of a record. A triggered tool runs on behalf of its author. For a
    /// tool this is never the runner that wrote it for another agent, because a runner sees all
    /// records.
    pub(crate) fn changer_of(self, record: &NewBreadcrumb) -> Uuid {
        if is_tool(record) { self.on_behalf_of } else { self.agent }
    }

    /// Only the creator of a record and curators can change its visibility and sensitivity.
    pub(crate) fn refuse_to_open(self, old: &Breadcrumb, new: &NewBreadcrumb) -> Result<(), StoreError> {
        let is_same = old.visibility == new.visibility && old.sensitivity == new.sensitivity;
        if is_same || self.is_curator || old.created_by == Some(self.on_behalf_of) {
            return Ok(());
        }
        let why = "only a curator or the record's creator can change its visibility or sensitivity";
        Err(StoreError::Forbidden(why.into()))
    }

    /// Tags what an agent with a restricted profile writes: `profile:<name>` of the author, plus
    /// the profile tags that the record already has. So a tool that the record triggers, or a tool
    /// that the record defines, does not give its author more tools.
    pub(crate) fn mark(&self, tags: &mut Vec<String>, before: &[String]) -> Result<(), Violations> {
        if self.profile == Profile::Main {
            return Ok(());
        }
        for tag in Profiles::of_record(self.profile, before).tags() {
            if !tags.contains(&tag) {
                tags.push(tag);
            }
        }
        if tags.len() > MAX_TAGS {
            let own = self.profile;
            let message = format!(
                "must leave space for the tag of the profile {own}; at most {MAX_TAGS} are allowed including it"
            );
            return Err(Violations::one("tags", message));
        }
        Ok(())
    }

    /// Sets [`CURATORS_TOOL_TAG`] on a `tool.code.v1` that a curator writes, and removes it from
    /// one that any other agent writes.
    pub(crate) fn mark_tool(&self, record: &mut NewBreadcrumb) -> Result<(), Violations> {
        if record.schema_name.as_deref() != Some(schema_names::TOOL_CODE) {
            return Ok(());
        }
        record.tags.retain(|tag| tag != CURATORS_TOOL_TAG);
        if self.is_curator {
            record.tags.push(CURATORS_TOOL_TAG.to_owned());
        }
        if record.tags.len() > MAX_TAGS {
            let message = format!(
                "must leave space for the tag {CURATORS_TOOL_TAG}; at most {MAX_TAGS} are allowed including it"
            );
            return Err(Violations::one("tags", message));
        }
        Ok(())
    }

    /// Only runners and curators write the records that runners maintain: readers trust the
    /// catalog, and runners act on schedules under the profiles that these name. Deleting a
    /// schedule is a cancellation, so the profile must allow it.
    pub(crate) fn refuse_runner_records(&self, schema_name: Option<&str>) -> Result<(), StoreError> {
        let Some(name) = MAINTAINED_BY_RUNNERS.into_iter().find(|name| schema_name == Some(*name)) else {
            return Ok(());
        };
        if !self.is_runner && !self.is_curator {
            return Err(StoreError::Forbidden(format!(
                "only a runner or a curator can create, change or delete a {name}"
            )));
        }
        if name == schema_names::SCHEDULE && self.profile.denies_name(CANCEL) {
            return Err(StoreError::Forbidden(format!("the profile {} does not allow {CANCEL}", self.profile)));
        }
        Ok(())
    }
}

fn is_tool(record: &NewBreadcrumb) -> bool {
    is_tool_schema(record.schema_name.as_deref())
}

pub(crate) fn is_tool_schema(schema_name: Option<&str>) -> bool {
    matches!(schema_name, Some(schema_names::TOOL_CODE | schema_names::TOOL_V1))
}
