//! Cases of tool authoring: what agents ask for, step by step, and what must come of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::join_all;
use rcrt_breadcrumb::{
    BreadcrumbQuery, Breadcrumbs, NewBreadcrumb, RequestKind, ToolRequest, ToolResponse, schema_names,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::case::Case;
use super::harness::{Harness, Tenant};
use super::run::{shown, tool, write_secrets};
use super::verdict::{holds, nevers};

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Asker {
    #[default]
    Author,
    /// Another author of the tenant.
    Rival,
    /// An author of the second tenant.
    Foreigner,
    /// An author of a tenant that limits how many tools an agent creates.
    Bounded,
}

/// Exactly one of `create`, `call` and `write`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    #[serde(default)]
    pub by: Asker,
    /// A `tool.create.request.v1` for the case's tool, with these changes of its definition.
    pub create: Option<Map<String, Value>>,
    /// A call of this tool.
    pub call: Option<String>,
    #[serde(default = "empty")]
    pub input: Value,
    /// The record of the case's tool, with these changes of its definition.
    pub write: Option<Map<String, Value>>,
    /// Further tags of the record.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Further fields of a request's context.
    #[serde(default)]
    pub request: Map<String, Value>,
    /// A curator grants the case's secrets to its tool before the step.
    #[serde(default)]
    pub granted: bool,
    /// The next step does not wait for this one.
    #[serde(default)]
    pub with_next: bool,
    /// How often it is done, at once.
    #[serde(default = "one")]
    pub times: usize,
    /// What the response, or the record that was written, contains.
    #[serde(default)]
    pub expect: Value,
    /// Texts in it.
    #[serde(default)]
    pub says: Vec<String>,
    /// Texts that are not in it.
    #[serde(default)]
    pub lacks: Vec<String>,
    /// The store refuses the record, with this text.
    pub refused: Option<String>,
}

fn one() -> usize {
    1
}

fn empty() -> Value {
    json!({})
}

impl Step {
    pub fn has_expectation(&self) -> bool {
        self.refused.is_some() || !self.expect.is_null() || !self.says.is_empty()
    }

    fn record(&self, case: &Case) -> NewBreadcrumb {
        let mut record = if let Some(name) = &self.call {
            let id = Uuid::new_v4().to_string();
            ToolRequest::record(name, grown(&self.input), Some(&id), Some("workspace:hostile"))
        } else if let Some(changes) = &self.write {
            NewBreadcrumb { context: spec(case, changes), ..tool(case) }
        } else {
            let spec = spec(case, self.create.as_ref().expect("a step has create, call or write"));
            let context = json!({"request_id": Uuid::new_v4(), "tool_spec": spec});
            NewBreadcrumb {
                title: "Create a tool".into(),
                schema_name: Some(schema_names::TOOL_CREATE_REQUEST.into()),
                tags: vec!["tool:request".into(), "workspace:hostile".into()],
                context: context.as_object().unwrap().clone(),
                ..NewBreadcrumb::default()
            }
        };
        record.context.extend(self.request.iter().map(|(key, value)| (key.clone(), grown(value))));
        record.tags.extend(self.tags.clone());
        record
    }
}

/// The definition of the case's tool. A change that is null removes the field.
fn spec(case: &Case, changes: &Map<String, Value>) -> Map<String, Value> {
    let mut spec = tool(case).context;
    if let Some(examples) = &case.head.examples {
        spec.insert("examples".into(), grown(examples));
    }
    for (field, value) in changes {
        if value.is_null() {
            spec.remove(field);
        } else {
            spec.insert(field.clone(), grown(value));
        }
    }
    spec
}

/// Replaces what a head cannot spell out: `{"@repeat": [text, times]}` is a long text, `{"@list":
/// [value, times]}` a list of equal values, and `{"@nest": levels}` lists in lists.
fn grown(value: &Value) -> Value {
    let Value::Object(entries) = value else {
        let Value::Array(items) = value else { return value.clone() };
        return items.iter().map(grown).collect();
    };
    let times = |operand: &Value| usize::try_from(operand.as_u64().expect("a number of times")).unwrap();
    match entries.iter().next() {
        Some((key, operand)) if key == "@repeat" => operand[0].as_str().unwrap().repeat(times(&operand[1])).into(),
        Some((key, operand)) if key == "@list" => vec![grown(&operand[0]); times(&operand[1])].into(),
        Some((key, operand)) if key == "@nest" => (0..times(operand)).fold(json!([]), |inner, _| json!([inner])),
        _ => entries.iter().map(|(key, value)| (key.clone(), grown(value))).collect(),
    }
}

/// Does the steps and returns the faults.
pub async fn run(harness: &Harness, case: &Case) -> Vec<String> {
    let (mut faults, mut outcomes) = (Vec::new(), BTreeMap::<String, usize>::new());
    write_secrets(&harness.tenants[0], case).await;
    for group in case.head.steps.chunk_by(|step, _| step.with_next) {
        let done = group.iter().flat_map(|step| std::iter::repeat_n(step, step.times));
        for (outcome, of_step) in join_all(done.map(|step| take(harness, case, step))).await {
            *outcomes.entry(outcome).or_default() += 1;
            faults.extend(of_step);
        }
    }
    if let Some(wanted) = case.head.outcomes.as_ref().filter(|wanted| **wanted != outcomes) {
        faults.push(format!("the outcomes are {outcomes:?}, not {wanted:?}"));
    }
    if let Some(wanted) = case.head.tools {
        let found = tools_named(&harness.tenants[0], &case.tool).await.len();
        if found != wanted {
            faults.push(format!("{found} tools have the name {}, not {wanted}", case.tool));
        }
    }
    faults
}

/// Does one step. Returns how it ended, and its faults.
async fn take(harness: &Harness, case: &Case, step: &Step) -> (String, Vec<String>) {
    let mut faults = Vec::new();
    let (tenant, agent) = agent(harness, step.by);
    if step.granted {
        grant(tenant, case).await;
    }
    let record = step.record(case);
    let kind = RequestKind::of(record.schema_name.as_deref());
    let request_id = kind.and_then(|kind| ToolRequest::own_id(kind, &record.context)).map(str::to_owned);
    let is_request = kind.is_some();
    let id = match (agent.create(record, None).await, &step.refused) {
        (Ok(created), None) => created.id,
        (Ok(_), Some(_)) => return ("written".into(), vec![format!("the store accepted {}", named(step))]),
        (Err(error), Some(text)) if error.to_string().contains(text) => return ("refused".into(), faults),
        (Err(error), _) => return ("refused".into(), vec![format!("the store refused {}: {error}", named(step))]),
    };
    let found = if is_request {
        match tenant.answer_to(id).await {
            Ok(context) => Value::Object(context),
            Err(fault) => return ("unanswered".into(), vec![fault]),
        }
    } else {
        json!(agent.get(id).await.unwrap())
    };
    if !step.expect.is_null() && !holds(&found, &step.expect) {
        faults.push(format!("{} does not have {}", named(step), step.expect));
    }
    let text = found.to_string();
    faults.extend(
        step.says
            .iter()
            .filter(|says| !text.contains(*says))
            .map(|says| format!("{} does not say {says:?}", named(step))),
    );
    faults.extend(
        step.lacks.iter().filter(|lacks| text.contains(*lacks)).map(|lacks| format!("{} says {lacks:?}", named(step))),
    );
    if is_request {
        faults.extend(
            nevers(case)
                .into_iter()
                .filter(|never| text.contains(never))
                .map(|never| format!("the response contains {never:?}")),
        );
        let count = responses(&**agent, id, request_id).await;
        if count != 1 {
            faults.push(format!("{count} responses to {}", named(step)));
        }
    }
    if !faults.is_empty() {
        let Value::Object(context) = found.clone() else { unreachable!() };
        faults.push(format!("the result: {}", shown(context)));
    }
    let status = found.get("status").and_then(Value::as_str).unwrap_or("written");
    (status.to_owned(), faults)
}

fn agent(harness: &Harness, asker: Asker) -> (&Tenant, &Arc<dyn Breadcrumbs>) {
    let (tenant, is_rival) = match asker {
        Asker::Author => (0, false),
        Asker::Rival => (0, true),
        Asker::Foreigner => (1, false),
        Asker::Bounded => (2, false),
    };
    let tenant = &harness.tenants[tenant];
    (tenant, if is_rival { &tenant.rival } else { &tenant.store })
}

/// A step in a message.
fn named(step: &Step) -> String {
    let text = match (&step.call, &step.write) {
        (Some(tool), _) => format!("the call of {tool} with {}", step.input),
        (None, Some(changes)) => format!("the record with {}", json!(changes)),
        (None, None) => format!("the creation with {}", json!(step.create)),
    };
    text.chars().take(300).collect()
}

/// How many responses the request with this record has. Another agent can have chosen the same id.
async fn responses(store: &dyn Breadcrumbs, record: Uuid, request_id: Option<String>) -> usize {
    let tag = ToolResponse::tag(&request_id.unwrap_or_else(|| record.to_string()));
    let query = BreadcrumbQuery { include_context: true, ..BreadcrumbQuery::tagged(tag) };
    let found = store.list(&query).await.unwrap().into_iter();
    let of_record = found.filter(|item| {
        let metadata = item.context.as_ref().and_then(|context| context.get("metadata"));
        RequestKind::is_response(item.schema_name.as_deref())
            && metadata.is_none_or(|metadata| metadata["request"] == json!(record))
    });
    of_record.count()
}

/// The records of tools with this name.
async fn tools_named(tenant: &Tenant, name: &str) -> Vec<Uuid> {
    let query = BreadcrumbQuery { include_context: true, limit: 1000, ..BreadcrumbQuery::of_schema("tool.code.v1") };
    let all = tenant.curator.list(&query).await.unwrap().into_iter();
    let named = all.filter(|item| item.context.as_ref().is_some_and(|context| context["name"] == name));
    named.map(|item| item.id).collect()
}

async fn grant(tenant: &Tenant, case: &Case) {
    let tools = tools_named(tenant, &case.tool).await;
    for secret in tenant.curator.secrets().await.unwrap() {
        if case.head.secrets.iter().any(|own| own.name == secret.name) {
            tenant.curator.grant_secret(secret.id, tools[0]).await.unwrap();
        }
    }
}
