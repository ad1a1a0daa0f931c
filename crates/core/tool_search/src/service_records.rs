//! The records that describe services: A2A agents and MCP servers.

use std::collections::{BTreeMap, HashMap};

use rcrt_breadcrumb::{
    BreadcrumbListItem, BreadcrumbQuery, Records, StoreError,
    schema_names::{A2A_AGENT, MCP_SERVER, MCP_STATUS},
};
use serde_json::{Map, Value};
use uuid::Uuid;

/// The most records of each kind that are read.
const MAX_RECORDS: u32 = 500;
const MAX_SKILLS: usize = 50;

/// An A2A agent: `{name, description, skills: [{id, name, description, tags, examples}]}`.
#[derive(Debug, Clone)]
pub(crate) struct Agent {
    pub record: Uuid,
    pub name: String,
    pub description: String,
    pub skills: Vec<Skill>,
}

#[derive(Debug, Clone)]
pub(crate) struct Skill {
    pub id: String,
    /// Name, description, tags and examples.
    pub words: Vec<String>,
}

/// An MCP server: `{name, description, …}`.
#[derive(Debug, Clone)]
pub(crate) struct Server {
    pub record: Uuid,
    /// What the operator says of it, else its own instructions, else what a model makes of it.
    pub summary: String,
}

/// The services that the asker can see.
#[derive(Debug, Clone, Default)]
pub struct ServiceRecords {
    pub(crate) agents: BTreeMap<String, Agent>,
    pub(crate) servers: HashMap<String, Server>,
}

impl ServiceRecords {
    /// Reads them as the agent of this store sees them.
    pub async fn read(store: &(impl Records + ?Sized)) -> Result<Self, StoreError> {
        let query = |schema: &str| BreadcrumbQuery { limit: MAX_RECORDS, ..BreadcrumbQuery::of_schema(schema) };
        let [agents, servers, states] = [A2A_AGENT, MCP_SERVER, MCP_STATUS].map(query);
        let (agents, servers, states) =
            futures::future::try_join3(store.list(&agents), store.list(&servers), store.list(&states)).await?;
        let instructions: HashMap<&str, &str> = states
            .iter()
            .filter_map(|state| state.context.as_ref())
            .filter_map(|state| {
                let made = state.get("summary").and_then(|summary| summary.get("text")?.as_str());
                Some((text(state, "server")?, text(state, "instructions").or(made)?))
            })
            .collect();
        // Newest first: of two records with one name, the older one counts.
        Ok(Self {
            agents: agents.iter().filter_map(Agent::read).map(|agent| (agent.name.clone(), agent)).collect(),
            servers: servers.iter().filter_map(|server| Server::read(server, &instructions)).collect(),
        })
    }
}

impl Agent {
    fn read(item: &BreadcrumbListItem) -> Option<Self> {
        let context = item.context.as_ref()?;
        let name = text(context, "name").filter(|name| !name.trim().is_empty())?;
        let skills = context.get("skills").and_then(Value::as_array).into_iter().flatten();
        let skills = skills.filter_map(Value::as_object).filter_map(Skill::read).take(MAX_SKILLS).collect();
        let description = text(context, "summary").or_else(|| text(context, "description")).unwrap_or_default();
        Some(Self { record: item.id, name: name.to_owned(), description: description.to_owned(), skills })
    }
}

impl Skill {
    fn read(skill: &Map<String, Value>) -> Option<Self> {
        let id = text(skill, "id").or_else(|| text(skill, "name"))?;
        let mut words: Vec<String> =
            ["id", "name", "description"].into_iter().filter_map(|key| text(skill, key)).map(str::to_owned).collect();
        for key in ["tags", "examples"] {
            let listed = skill.get(key).and_then(Value::as_array).into_iter().flatten();
            words.extend(listed.filter_map(Value::as_str).take(MAX_SKILLS).map(str::to_owned));
        }
        Some(Self { id: id.to_owned(), words })
    }
}

impl Server {
    /// `instructions`: by the names of the servers.
    fn read(item: &BreadcrumbListItem, instructions: &HashMap<&str, &str>) -> Option<(String, Self)> {
        let context = item.context.as_ref()?;
        let name = text(context, "name")?;
        let described = [text(context, "description"), instructions.get(name).copied()].into_iter().flatten();
        let summary = described.map(str::trim).find(|text| !text.is_empty()).unwrap_or_default();
        Some((name.to_owned(), Self { record: item.id, summary: summary.to_owned() }))
    }
}

fn text<'c>(context: &'c Map<String, Value>, key: &str) -> Option<&'c str> {
    context.get(key).and_then(Value::as_str)
}
