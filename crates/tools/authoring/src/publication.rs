//! Publishes a tool: from its description by an agent to its record.

use std::collections::BTreeMap;

use chrono::{SecondsFormat, Utc};
use rcrt_breadcrumb::{
    Breadcrumb, BreadcrumbChanges, CreationMode, DRAFT_TAG, NewBreadcrumb, StoreError, ToolFailure, is_draft,
    schema_names,
};
use rcrt_executors::ToolCall;
use rcrt_executors::builtin::store_failed;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::assessment::{Assessment, Assessor, ToolFinding};
use crate::owned_tools::{ToolsOfName, first_with_name, maker_tag};
use crate::reports::shown;

const WORKSPACE: &str = "workspace:tools";

/// What an agent asks for.
pub(crate) struct Publication {
    /// The context of a `tool.code.v1`.
    pub spec: Map<String, Value>,
    pub mode: CreationMode,
    /// The version of the tool's record that the agent saw.
    pub if_version: Option<i64>,
}

/// A record that was written, or would be.
struct Published {
    status: &'static str,
    record: Option<Breadcrumb>,
}

impl Publication {
    /// Returns the context of a `tool.create.response.v1`, without the id of its request. Findings
    /// are part of it; a failure is one of the store.
    pub async fn run(self, assessor: &Assessor, call: &ToolCall) -> Result<Value, ToolFailure> {
        let (mut assessment, definition) = assessor.assess(call.owner_id, &self.spec, &CancellationToken::new()).await;
        let name = self.spec.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        let version = definition.map(|definition| definition.version.clone()).unwrap_or_default();
        let existing = if name.is_empty() {
            None
        } else {
            let found = ToolsOfName::find(&*call.breadcrumbs, call.request.agent_id, &name).await;
            let found = found.map_err(store_failed)?;
            let publishes = self.mode == CreationMode::Update && assessment.examples_pass();
            let is_contested =
                publishes && found.is_contested(&*call.breadcrumbs, &name).await.map_err(store_failed)?;
            self.check_name(&found, is_contested, call, &mut assessment);
            found.own
        };
        let published = if !assessment.is_ok() {
            Published { status: "rejected", record: existing }
        } else if self.mode == CreationMode::DryRun {
            Published { status: "dry_run", record: existing }
        } else {
            match self.write(call, &name, existing, !assessment.examples_pass()).await {
                Ok(published) => match self.lost_name(call, &name, &published).await.map_err(store_failed)? {
                    Some(finding) => {
                        assessment.errors.push(finding);
                        Published { status: "rejected", record: None }
                    }
                    None => {
                        let record = published.record.as_ref();
                        assessment.warnings.extend(record.and_then(|record| draft(record, &assessment)));
                        published
                    }
                },
                Err(StoreError::VersionConflict { actual, .. }) => {
                    assessment.errors.push(conflict(actual));
                    Published { status: "rejected", record: None }
                }
                Err(error) => return Err(store_failed(error)),
            }
        };
        Ok(self.result(&name, &version, &assessment, &published))
    }

    /// `is_contested`: the update publishes the name, which another author's tool has.
    fn check_name(&self, found: &ToolsOfName, is_contested: bool, call: &ToolCall, assessment: &mut Assessment) {
        let own = found.own.as_ref();
        let is_same = own.is_some_and(|own| own.context == self.spec);
        let finding = match self.mode {
            CreationMode::Create if own.is_some() && !is_same => Some(name_exists()),
            CreationMode::Update if is_contested => Some(ToolFinding::new(
                "name",
                "name-taken",
                "another author's tool was published with this name, so this draft cannot be",
                Some("Create the tool with another name, and retire this draft"),
            )),
            CreationMode::Update if own.is_none() => Some(ToolFinding::new(
                "name",
                "not-found",
                "you have no tool with this name",
                Some("Use mode create, or a name that list_my_tools returns"),
            )),
            _ if own.is_none() && found.other.is_some() => Some(name_taken()),
            _ => None,
        };
        assessment.errors.extend(finding);
        if let (Some(own), Some(expected)) = (own, self.if_version)
            && own.version != expected
            && !is_same
        {
            assessment.errors.push(conflict(own.version));
        }
        let secrets = self.spec.get("required_secrets").and_then(Value::as_array);
        if secrets.is_some_and(|names| !names.is_empty()) {
            let message = "a call is refused until a curator grants the tool each of its secrets";
            let name = self.spec.get("name").and_then(Value::as_str).unwrap_or_default();
            let fix = format!("Ask a curator to run: rcrt secret grant <secret> {name}");
            assessment.warnings.push(ToolFinding::new("required_secrets", "secret-grant", message, Some(&fix)));
        }
        if call.request.agent_id.is_none() {
            assessment.errors.push(ToolFinding::new("", "author", "a tool needs an author: call as an agent", None));
        }
    }

    /// A repeated attempt finds what an earlier one wrote. `as_draft`: what the examples say. The
    /// store decides by the tenant's rule.
    async fn write(
        &self,
        call: &ToolCall,
        name: &str,
        own: Option<Breadcrumb>,
        as_draft: bool,
    ) -> Result<Published, StoreError> {
        let store = &*call.breadcrumbs;
        let Some(own) = own else {
            let key = format!("create_tool:{}", call.request.id);
            let created = store.create(self.record(call, name, as_draft), Some(&key)).await?;
            return Ok(Published { status: "created", record: Some(store.get(created.id).await?) });
        };
        let status = if self.mode == CreationMode::Create { "created" } else { "updated" };
        let is_released = is_draft(&own.tags) && !as_draft && self.mode == CreationMode::Update;
        if own.context == self.spec && !is_released {
            return Ok(Published { status, record: Some(own) });
        }
        let mut tags = own.tags.clone();
        mark_draft(&mut tags, as_draft);
        for tag in call.profiles.tags() {
            if !tags.contains(&tag) {
                tags.push(tag);
            }
        }
        call.chain.mark(&mut tags, own.version.saturating_add(1));
        let changes = BreadcrumbChanges {
            title: self.title(),
            description: self.description(),
            context: Some(self.spec.clone()),
            tags: Some(tags),
            ..BreadcrumbChanges::default()
        };
        let expected = self.if_version.unwrap_or(own.version);
        Ok(Published { status, record: Some(store.update(own.id, expected, changes).await?) })
    }

    /// Two creations of one name can both find it free. The record that is not the first to have it
    /// would never be offered: it is deleted, and the creation is rejected.
    async fn lost_name(
        &self,
        call: &ToolCall,
        name: &str,
        published: &Published,
    ) -> Result<Option<ToolFinding>, StoreError> {
        let is_new = |record: &&Breadcrumb| record.version == 1 && self.mode == CreationMode::Create;
        let Some(record) = published.record.as_ref().filter(is_new) else { return Ok(None) };
        let store = &*call.breadcrumbs;
        let Some(first) =
            first_with_name(store, call.request.agent_id, name).await?.filter(|first| first.id != record.id)
        else {
            return Ok(None);
        };
        // A repeated creation of a tool that exists changes nothing.
        match store.get(call.request.id).await {
            Ok(request) if record.created_at < request.created_at => return Ok(None),
            Ok(_) => {}
            Err(StoreError::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error),
        }
        match store.delete(record.id, Some(record.version)).await {
            Ok(()) | Err(StoreError::NotFound { .. }) => {}
            Err(error) => return Err(error),
        }
        let is_own = first.created_by == call.request.agent_id && first.schema_name == record.schema_name;
        Ok(Some(if is_own { name_exists() } else { name_taken() }))
    }

    fn title(&self) -> Option<String> {
        let title = self.spec.get("annotations").and_then(|all| all.get("title")).or_else(|| self.spec.get("name"));
        title.and_then(Value::as_str).map(|title| title.chars().take(200).collect())
    }

    fn description(&self) -> Option<String> {
        self.spec.get("description").and_then(Value::as_str).map(str::to_owned)
    }

    fn record(&self, call: &ToolCall, name: &str, as_draft: bool) -> NewBreadcrumb {
        let own = ["tool".to_owned(), format!("tool:{name}"), WORKSPACE.to_owned()];
        let maker = call.request.agent_id.map(maker_tag);
        let mut tags: Vec<String> = own.into_iter().chain(maker).chain(call.profiles.tags()).collect();
        mark_draft(&mut tags, as_draft);
        call.chain.mark(&mut tags, 1);
        NewBreadcrumb {
            title: self.title().unwrap_or_default(),
            description: self.description(),
            context: self.spec.clone(),
            tags,
            schema_name: Some(schema_names::TOOL_CODE.to_owned()),
            ..NewBreadcrumb::default()
        }
    }

    fn result(&self, name: &str, version: &str, assessment: &Assessment, published: &Published) -> Value {
        let (hash, _) = Breadcrumb::measure(&self.spec);
        let mut result = json!({
            "status": published.status,
            "name": name,
            "version": version,
            "definition_hash": Breadcrumb::definition_hash(&hash),
            "validation": assessment.validation(),
            "examples": shown(&assessment.examples),
            "timestamp": Utc::now().to_rfc3339_opts(SecondsFormat::Millis, true),
        });
        if let (Some(record), Some(result)) = (&published.record, result.as_object_mut()) {
            result.insert("tool_id".into(), json!(record.id));
            result.insert("record_version".into(), json!(record.version));
            result.insert("draft".into(), json!(is_draft(&record.tags)));
        }
        result
    }
}

fn name_exists() -> ToolFinding {
    let fix = "Use mode update (or update_tool), or choose another name";
    ToolFinding::new("name", "name-exists", "you already have a tool with this name", Some(fix))
}

fn name_taken() -> ToolFinding {
    ToolFinding::new("name", "name-taken", "another author's tool has this name", Some("Choose another name"))
}

fn mark_draft(tags: &mut Vec<String>, as_draft: bool) {
    tags.retain(|tag| tag != DRAFT_TAG);
    if as_draft {
        tags.push(DRAFT_TAG.to_owned());
    }
}

/// What publishes the record, if it is a draft.
fn draft(record: &Breadcrumb, assessment: &Assessment) -> Option<ToolFinding> {
    if !is_draft(&record.tags) {
        return None;
    }
    let name = record.context.get("name").and_then(Value::as_str).unwrap_or_default();
    let ask = format!("sk a curator to run: rcrt tool publish {name}");
    let (message, fix) = if assessment.examples_pass() {
        ("this version is a draft: only you can call it until a curator publishes it", format!("A{ask}"))
    } else {
        (
            "this version is a draft: only you can call it, because not every example ran and passed",
            format!("Complete the examples and update the tool, or a{ask}"),
        )
    };
    Some(ToolFinding::new("", "draft", message, Some(&fix)))
}

fn conflict(actual: i64) -> ToolFinding {
    let message = format!("the tool's record is at version {actual}");
    ToolFinding::new("if_version", "version-conflict", message, Some("Read the tool with describe_tool, and repeat"))
}

/// A spec with changed fields. A field that is null is removed.
pub(crate) fn merged(mut spec: Map<String, Value>, changes: &BTreeMap<String, Value>) -> Map<String, Value> {
    for (field, value) in changes {
        if value.is_null() {
            spec.remove(field);
        } else {
            spec.insert(field.clone(), value.clone());
        }
    }
    spec
}
