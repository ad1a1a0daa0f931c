//! The agent that acts, the agent on whose behalf it acts, and what it can do beyond any writer.

use rcrt_breadcrumb::{
    Breadcrumb, CURATORS_TOOL_TAG, DRAFT_TAG, Identity, MAX_TAGS, MEMORY_OF_CALLER_TAG, NewBreadcrumb, Profile,
    Profiles, PublishRule, RequestKind, Role, StoreError, TRIGGERED_BY_TAG, Violations, Visibility, is_draft,
    schema_names,
};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::role_cache::AgentRights;

const MAINTAINED_BY_RUNNERS: [&str; 7] = [
    schema_names::TOOL_CATALOG,
    schema_names::TOOL_RUNNER,
    schema_names::TOOL_LOG,
    schema_names::TOOL_SHADOW,
    schema_names::SCHEDULE,
    schema_names::A2A_AGENT,
    schema_names::A2A_TASK,
];
/// What a runner writes for a caller: a tool cannot write them.
const WRITTEN_FOR_CALLERS: [&str; 3] = [schema_names::TOOL_LOG, schema_names::TOOL_PROGRESS, schema_names::TOOL_SHADOW];
/// What a tool cannot write for an agent either: a server's record names a command to run.
const OF_MCP_SERVERS: [&str; 3] = [schema_names::MCP_SERVER, schema_names::MCP_STATUS, schema_names::MCP_CHANGE];
const CANCEL: &str = "cancel_scheduled_task";

#[derive(Debug, Clone, Copy)]
pub(crate) struct Actor {
    pub(crate) agent: Uuid,
    /// The agent on whose behalf a runner acts.
    pub(crate) on_behalf_of: Uuid,
    pub(crate) profile: Profile,
    pub(crate) is_curator: bool,
    is_runner: bool,
    /// It, or the agent on whose behalf it acts, can create requests and nothing else.
    pub(crate) writes_only_requests: bool,
    /// It, or the agent on whose behalf it acts, sees its own requests and their responses and
    /// nothing else.
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

    /// With the limits of the agent on whose behalf it acts.
    pub(crate) fn limited_by(self, agent: &AgentRights) -> Self {
        let AgentRights { writes_only_requests, reads_only_own_calls, .. } = *agent;
        Self { writes_only_requests, reads_only_own_calls, ..self }
    }

    pub(crate) fn is_acting_for_another(self) -> bool {
        self.on_behalf_of != self.agent
    }

    /// An agent has no role in another tenant.
    pub(crate) fn as_guest(self) -> Self {
        Self { is_curator: false, is_runner: false, ..self }
    }

    /// A caller can only create requests. A tool that runs for it can also create records, except
    /// those that the runtime and other agents act on.
    pub(crate) fn refuse_creates_of_callers(self, schema_name: Option<&str>) -> Result<(), StoreError> {
        if !self.writes_only_requests || schema_name == Some(schema_names::TOOL_REQUEST) {
            return Ok(());
        }
        if self.is_acting_for_another() {
            let is_the_runners = WRITTEN_FOR_CALLERS.map(Some).contains(&schema_name);
            return if is_the_runners { Ok(()) } else { refuse_definitions(schema_name) };
        }
        self.refuse_other_writes_of_callers()
    }

    /// Called before the record is read, so that a caller learns nothing about it.
    pub(crate) fn refuse_changes_of_callers(self) -> Result<(), StoreError> {
        if self.is_acting_for_another() { Ok(()) } else { self.refuse_other_writes_of_callers() }
    }

    /// Refuses a change or a deletion because another agent wrote the record. `schemas`: of the
    /// record before and after the change.
    pub(crate) fn refuse_change(self, record: &Breadcrumb, schemas: &[Option<&str>]) -> Result<(), StoreError> {
        self.refuse_change_for_callers(record, schemas)?;
        self.refuse_change_of_tools(record, schemas)
    }

    /// A tool that runs for a caller changes and deletes only what such a tool has created.
    fn refuse_change_for_callers(self, record: &Breadcrumb, schemas: &[Option<&str>]) -> Result<(), StoreError> {
        if !self.writes_only_requests {
            return Ok(());
        }
        if record.created_by != Some(self.on_behalf_of) {
            let why =
                "a tool that runs for an agent with the role caller can change and delete only that agent's records";
            return Err(StoreError::Forbidden(why.into()));
        }
        // The progress of a call is one record, which the runner changes.
        let mut others = schemas.iter().filter(|name| **name != Some(schema_names::TOOL_PROGRESS));
        others.try_for_each(|name| refuse_definitions(*name))
    }

    /// Callers trust the author of a tool, so only its author and curators change or delete its
    /// record, also while it is retired. The runtime itself keeps the tools that come with it.
    fn refuse_change_of_tools(self, record: &Breadcrumb, schemas: &[Option<&str>]) -> Result<(), StoreError> {
        let is_tool = |name| schema_names::is_tool(name) || name == Some(schema_names::TOOL_RETIRED);
        let is_author = record.created_by == Some(self.on_behalf_of);
        if is_author || self.is_curator || self.is_plain_runner() || !schemas.iter().copied().any(is_tool) {
            return Ok(());
        }
        let why = "only its author or a curator can change or delete the record of a tool; ask one of them, or write a \
                   tool with another name";
        Err(StoreError::Forbidden(why.into()))
    }

    pub(crate) fn refuse_other_writes_of_callers(self) -> Result<(), StoreError> {
        if !self.writes_only_requests {
            return Ok(());
        }
        let why = format!(
            "an agent with the role caller can create a {} and change nothing else; use an agent with the role emitter",
            schema_names::TOOL_REQUEST
        );
        Err(StoreError::Forbidden(why))
    }

    /// Only the runner that runs a call knows which call its tool's requests belong to.
    pub(crate) fn refuse_parent(self, record: &NewBreadcrumb) -> Result<(), Violations> {
        let is_request = record.schema_name.as_deref() == Some(schema_names::TOOL_REQUEST);
        let has_parent = record.context.get("parent").is_some_and(|parent| !parent.is_null());
        if is_request && has_parent && !self.is_runtime() {
            return Err(Violations::one(
                "context.parent",
                "is set by the runtime when a tool calls another; leave it out",
            ));
        }
        Ok(())
    }

    /// A runner that writes for one of its calls, or for itself.
    fn is_runtime(self) -> bool {
        self.is_plain_runner() || (self.is_runner && self.is_acting_for_another())
    }

    /// A runner on its own behalf, with no other role.
    pub(crate) fn is_plain_runner(self) -> bool {
        self.is_runner && !self.is_curator && !self.is_acting_for_another()
    }

    pub(crate) fn is_runner(self) -> bool {
        self.is_runner
    }

    /// Whether its own roles let it see all records of its tenant.
    pub(crate) fn sees_all(self) -> bool {
        (self.is_curator || self.is_runner) && !self.is_acting_for_another()
    }

    /// The creator of a new record. A runner that acts for another agent is the creator, except of
    /// private records, which only the other agent can see, of requests and tools, which must not
    /// count as the runner's, and of what it writes for a caller, which reads only its own.
    pub(crate) fn creator_of(self, record: &NewBreadcrumb) -> Uuid {
        let is_request = RequestKind::of(record.schema_name.as_deref()).is_some();
        let is_private = record.visibility == Visibility::Private;
        if is_request || is_tool(record) || is_private || self.writes_only_requests {
            self.on_behalf_of
        } else {
            self.agent
        }
    }

    /// The agent whose tools count toward the quota of tools that are created in an hour. A curator
    /// installs many at once.
    pub(crate) fn limited_creator(self) -> Option<Uuid> {
        (!self.is_curator).then_some(self.on_behalf_of)
    }

    /// The author of a version of a record. A triggered tool runs on behalf of its author. For a
    /// tool this is never the runner that wrote it for another agent, because a runner sees all
    /// records.
    /// A curator that publishes a draft does not become its author: the tool must not act with the
    /// curator's rights.
    pub(crate) fn changer_of(self, old: &Breadcrumb, new: &NewBreadcrumb) -> Uuid {
        if !is_tool(new) {
            return self.agent;
        }
        let publishes = self.is_curator
            && is_draft(&old.tags)
            && !is_draft(&new.tags)
            && old.schema_name == new.schema_name
            && old.context == new.context
            && old.description == new.description
            && old.semantic_version == new.semantic_version;
        old.updated_by.filter(|_| publishes).unwrap_or(self.on_behalf_of)
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
    ///
    /// Only a runner says which call wrote the record: others would decide below which call those
    /// that it triggers count.
    pub(crate) fn mark(&self, tags: &mut Vec<String>, before: &[String]) -> Result<(), Violations> {
        if !self.is_runtime() {
            tags.retain(|tag| !tag.starts_with(TRIGGERED_BY_TAG));
        }
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

    /// Sets the tags of a tool that no author can forge: [`CURATORS_TOOL_TAG`] on a `tool.code.v1`
    /// that a curator writes and on no other, and [`DRAFT_TAG`] as the tenant's rule requires.
    pub(crate) fn mark_tool(&self, record: &mut NewBreadcrumb, publish: PublishRule) -> Result<(), Violations> {
        if !is_tool(record) {
            return Ok(());
        }
        let mut mark = |tag: &str, is_set: bool| {
            record.tags.retain(|one| one != tag);
            if is_set {
                record.tags.push(tag.to_owned());
            }
        };
        // The runtime itself writes the tools that come with it.
        if !self.is_curator && !self.is_plain_runner() && publish != PublishRule::Examples {
            mark(DRAFT_TAG, publish == PublishRule::Curator);
        }
        if record.schema_name.as_deref() == Some(schema_names::TOOL_CODE) {
            mark(CURATORS_TOOL_TAG, self.is_curator);
        }
        if record.tags.len() > MAX_TAGS {
            let message = format!(
                "must leave space for the tags {CURATORS_TOOL_TAG} and {DRAFT_TAG}; at most {MAX_TAGS} are allowed \
                 including them"
            );
            return Err(Violations::one("tags", message));
        }
        Ok(())
    }

    /// Tags what tools remember for a caller. A caller's entry must not replace one with the same
    /// key for other agents.
    pub(crate) fn mark_memory(self, record: &mut NewBreadcrumb) -> Result<(), Violations> {
        if !self.writes_only_requests || record.schema_name.as_deref() != Some(schema_names::MEMORY_ENTRY) {
            return Ok(());
        }
        record.tags.retain(|tag| !tag.starts_with(MEMORY_OF_CALLER_TAG));
        record.tags.push(format!("{MEMORY_OF_CALLER_TAG}{}", self.on_behalf_of));
        if record.tags.len() > MAX_TAGS {
            let message =
                format!("must leave space for the tag {MEMORY_OF_CALLER_TAG}<id>; at most {MAX_TAGS} are allowed");
            return Err(Violations::one("tags", message));
        }
        Ok(())
    }

    /// Refuses a write of a record that is for runners or curators. `context`: that of the record.
    pub(crate) fn refuse_reserved_records(
        &self,
        schema_name: Option<&str>,
        context: &Map<String, Value>,
    ) -> Result<(), StoreError> {
        self.refuse_runner_records(schema_name)?;
        self.refuse_mcp_records(schema_name, context)
    }

    /// Only curators, and runners on their own behalf, write the records of MCP servers and of
    /// their tools: what a curator accepted is in them.
    fn refuse_mcp_records(&self, schema_name: Option<&str>, context: &Map<String, Value>) -> Result<(), StoreError> {
        if self.is_curator || self.is_plain_runner() {
            return Ok(());
        }
        let is_tool = matches!(schema_name, Some(schema_names::TOOL_V1 | schema_names::TOOL_RETIRED));
        let kind = context.get("implementation").and_then(|implementation| implementation.get("type"));
        let what = match schema_name.filter(|name| OF_MCP_SERVERS.contains(name)) {
            Some(name) => name,
            None if is_tool && kind.is_some_and(|kind| kind == "mcp") => "tool of an MCP server",
            None => return Ok(()),
        };
        Err(StoreError::Forbidden(format!("only a curator can create, change or delete a {what}")))
    }

    /// Only runners and curators write the records that runners maintain: readers trust the
    /// catalog, the logs and the counts of shadows, and runners act on schedules under the profiles
    /// that these name. Deleting a schedule is a cancellation, so the profile must allow it.
    fn refuse_runner_records(&self, schema_name: Option<&str>) -> Result<(), StoreError> {
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

/// Tools, schema definitions and guides: other agents run or follow them.
fn refuse_definitions(schema_name: Option<&str>) -> Result<(), StoreError> {
    match schema_name.filter(|name| name.starts_with("tool.") || name.starts_with("schema.")) {
        None => Ok(()),
        Some(name) => Err(StoreError::Forbidden(format!(
            "a tool that runs for an agent with the role caller cannot create, change or delete a {name}"
        ))),
    }
}

fn is_tool(record: &NewBreadcrumb) -> bool {
    schema_names::is_tool(record.schema_name.as_deref())
}
