//! The known agents of a tenant: its records, and the operator's well-known ones.

use chrono::Utc;
use rcrt_breadcrumb::{
    BreadcrumbChanges, Breadcrumbs, HostEntry, MAX_PAGE, Records, Selector, StoreError, ToolFailure,
    check_opaque_length, named_records,
};
use rcrt_egress::{Connections, HeldSecret, NetRules, Origin, Vault};
use rcrt_executors::ToolCall;
use serde::Serialize;
use url::Url;
use uuid::Uuid;

use crate::A2a;
use crate::agent::{self, AGENT_SCHEMA, AgentRecord, Auth, Interface};
use crate::card::FoundCard;
use crate::failures::{denied, failed, invalid, store_failed};
use crate::remote::{CardWay, GATE_NAME, Remote};
use crate::settings::WellKnown;

/// The name of a well-known agent's header in the vault.
const OPERATORS: &str = "A2A_HEADER";

/// A known agent, with its record.
#[derive(Debug, Clone, Serialize)]
pub struct KnownAgent {
    /// The record.
    pub id: Uuid,
    #[serde(skip)]
    pub version: i64,
    #[serde(flatten)]
    pub agent: AgentRecord,
}

impl KnownAgent {
    pub(crate) fn has_name(&self, name: &str) -> bool {
        self.agent.name.eq_ignore_ascii_case(name)
    }
}

/// All agents with a record, by name. Of two with one name the older one counts.
pub async fn agents(store: &(impl Records + ?Sized)) -> Result<Vec<KnownAgent>, StoreError> {
    let selector = Selector { schema_name: Some(AGENT_SCHEMA.into()), ..Selector::default() };
    let rows = named_records(store, selector, MAX_PAGE).await?;
    let mut known: Vec<KnownAgent> = Vec::new();
    for row in rows.into_iter().filter(|row| row.owner_id.is_none()) {
        match AgentRecord::read(&row.context.unwrap_or_default()) {
            Ok(agent) => known.push(KnownAgent { id: row.id, version: row.version, agent }),
            Err(error) => tracing::warn!(record = %row.id, %error, "a record of an agent cannot be read"),
        }
    }
    known.sort_by_cached_key(|known| (known.agent.name.to_lowercase(), known.id));
    known.dedup_by(|later, first| later.has_name(&first.agent.name));
    Ok(known)
}

/// Makes the changed card of an agent count. Returns whether one waited. Only curators do this.
pub async fn accept_card(store: &(impl Records + ?Sized), known: &KnownAgent) -> Result<bool, StoreError> {
    let mut agent = known.agent.clone();
    if !agent.accept() {
        return Ok(false);
    }
    store.update(known.id, known.version, changes(&agent)).await?;
    Ok(true)
}

/// Deletes all records with this name: several runners can have registered it at the same time.
/// Returns the name as it was written, if there was one.
pub async fn remove_agent(store: &(impl Records + ?Sized), name: &str) -> Result<Option<String>, StoreError> {
    let mut removed = None;
    while let Some(known) = agents(store).await?.into_iter().find(|known| known.has_name(name)) {
        match store.delete(known.id, None).await {
            Ok(()) | Err(StoreError::NotFound { .. }) => removed = Some(known.agent.name),
            Err(error) => return Err(error),
        }
    }
    Ok(removed)
}

fn changes(agent: &AgentRecord) -> BreadcrumbChanges {
    BreadcrumbChanges {
        context: Some(agent.context()),
        description: Some(agent.card.description.clone()),
        ..BreadcrumbChanges::default()
    }
}

impl A2a {
    pub(crate) fn well_known(&self, name: &str) -> Option<&WellKnown> {
        self.settings.well_known.iter().find(|known| known.name.eq_ignore_ascii_case(name))
    }

    /// The agent of this name. A well-known one without a record gets one, with its present card.
    pub(crate) async fn find(&self, call: &ToolCall, name: &str) -> Result<KnownAgent, ToolFailure> {
        let known = agents(&*self.store).await.map_err(store_failed)?;
        if let Some(found) = known.iter().find(|known| known.has_name(name)) {
            return Ok(found.clone());
        }
        if let Some(well_known) = self.well_known(name) {
            let found = self.read_card(&CardWay::of(call)?, &well_known.url).await?;
            return self.register(found, well_known.name.clone(), None, true).await;
        }
        let mut names: Vec<&str> = known.iter().map(|known| known.agent.name.as_str()).collect();
        names.extend(self.settings.well_known.iter().map(|known| known.name.as_str()));
        names.sort_unstable();
        names.dedup_by(|a, b| a.eq_ignore_ascii_case(b));
        let names = if names.is_empty() { "none yet".to_owned() } else { names.join(", ") };
        Err(invalid("agent_name", format!("there is no agent {name:?}; the known agents are: {names}")))
    }

    /// Writes the record of an agent whose card was read.
    pub(crate) async fn register(
        &self,
        found: FoundCard,
        name: String,
        auth: Option<Auth>,
        well_known: bool,
    ) -> Result<KnownAgent, ToolFailure> {
        if !agent::is_name(&name) {
            let card_name = found.read.name;
            return Err(invalid("name", format!("{}; the card says {card_name:?}", agent::NAME_RULE)));
        }
        let now = Utc::now();
        let agent = AgentRecord {
            name,
            card_url: found.url,
            card: found.read.card,
            well_known,
            auth,
            last_seen: now,
            refresh_at: now + self.settings.valid_for(found.max_age),
            problem: None,
            pending: None,
            accepted_hash: None,
        };
        let created = self.store.create(agent.record(), None).await.map_err(store_failed)?;
        Ok(KnownAgent { id: created.id, version: created.version, agent })
    }

    /// Writes an agent's record again. A conflict means that another runner or a curator has just
    /// written it, so nothing is lost.
    pub(crate) async fn rewrite(&self, known: &KnownAgent) -> Result<(), StoreError> {
        match self.store.update(known.id, known.version, changes(&known.agent)).await {
            Ok(_) | Err(StoreError::VersionConflict { .. } | StoreError::NotFound { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The way to an agent. `tool_id`: the record of `invoke_agent`, which must hold the grant of
    /// the agent's secret. The error is a sentence.
    pub(crate) async fn remote<'a>(
        &'a self,
        agent: &AgentRecord,
        rules: NetRules,
        tool_id: Uuid,
        origin: Origin,
    ) -> Result<Remote<'a>, ToolFailure> {
        let (secret, header) = match (&agent.auth, self.well_known(&agent.name).filter(|_| agent.well_known)) {
            (Some(auth), _) => (Some(held(&*self.store, &auth.secret, tool_id).await?), Some(auth.header.clone())),
            (None, Some(WellKnown { header: Some((header, value)), url, .. })) => {
                (Some(operators(value, url)?), Some(header.clone()))
            }
            _ => (None, None),
        };
        let name = secret.as_ref().map(|secret: &HeldSecret| secret.name.clone()).unwrap_or_default();
        let vault = Vault::new(secret.into_iter().collect()).map_err(|error| failed(error.to_string()))?;
        let handle = vault.handle(&name).map(str::to_owned);
        let is_bearer = |header: &str| header.eq_ignore_ascii_case("authorization") && name != OPERATORS;
        let header = header.zip(handle).map(|(header, handle)| {
            let value = if is_bearer(&header) { format!("Bearer {handle}") } else { handle };
            (header, value)
        });
        Ok(Remote {
            gate: &self.egress,
            tool: GATE_NAME,
            rules,
            vault,
            connections: Connections::default(),
            origin: Some(origin),
            header,
            time: self.settings.request_time,
        })
    }

    /// Whether an agent's interface is this installation itself.
    pub(crate) fn is_own(&self, interface: &Interface) -> bool {
        let origin = |url: &str| Url::parse(url).map(|url| url.origin().ascii_serialization());
        let Ok(of_agent) = origin(&interface.url) else { return false };
        self.settings.own_origins.iter().any(|own| origin(own).as_ref() == Ok(&of_agent))
    }
}

/// A secret that is granted to the tool. Its use is audited.
async fn held(store: &dyn Breadcrumbs, name: &str, tool_id: Uuid) -> Result<HeldSecret, ToolFailure> {
    let secrets = store.secrets().await.map_err(store_failed)?;
    let ungranted = || {
        denied(format!(
            "the secret {name:?} of the agent does not exist or is not granted to invoke_agent; a curator can do so with \
             rcrt secret grant {name} invoke_agent"
        ))
    };
    let secret = secrets.into_iter().find(|secret| secret.name == name && secret.is_granted_to(tool_id));
    let secret = secret.ok_or_else(ungranted)?;
    if secret.hosts.is_empty() {
        return Err(denied(format!(
            "the secret {name:?} is bound to no host; a curator binds it with rcrt secret set {name} --keep-value --host \
             HOST"
        )));
    }
    let value = match store.decrypt_secret(secret.id, "a request to another agent", Some(tool_id)).await {
        Ok(value) => value,
        Err(StoreError::Forbidden(_) | StoreError::NotFound { .. }) => return Err(ungranted()),
        Err(error) => return Err(store_failed(error)),
    };
    check_opaque_length(value.len(), "its value").map_err(|found| denied(format!("the secret {name:?}: {found}")))?;
    let hosts: Result<Vec<HostEntry>, _> = secret.hosts.iter().map(|host| HostEntry::parse(host)).collect();
    let hosts = hosts.map_err(|error| denied(format!("the secret {name:?}: {error}")))?;
    Ok(HeldSecret { name: secret.name, value, hosts, readable: false })
}

/// The header of a well-known agent, for its own host.
fn operators(value: &str, url: &Url) -> Result<HeldSecret, ToolFailure> {
    let host = format!("{}:{}", url.host_str().unwrap_or_default(), url.port_or_known_default().unwrap_or(443));
    let host = HostEntry::parse(&host).map_err(|error| failed(error.to_string()))?;
    Ok(HeldSecret { name: OPERATORS.into(), value: value.to_owned(), hosts: vec![host], readable: false })
}
