//! The steps of `rcrt tool migrate` after the conversion: the shadow, its promotion, and the end of
//! the old tool.

use rcrt_breadcrumb::{
    Breadcrumb, BreadcrumbChanges, CURATORS_TOOL_TAG, DRAFT_TAG, ENOUGH_SAME, NewBreadcrumb, Records as _,
    ShadowReport, is_draft, is_shadow_tag, schema_names, shadow_tag,
};
use rcrt_client::Client;
use serde_json::{Value, json};

use super::required_secrets::KnownSecrets;
use super::tool_lookup::read;
use super::tool_migrate::{Migrate, Records, check_repeatable};
use super::tool_migrate_list::{report_on, reports, share};
use super::tool_rollback::changed_meanwhile;
use crate::exit::{Failure, fail};
use crate::output::Output;

impl Migrate {
    /// Creates the draft that runs beside the old tool.
    pub(super) async fn create_shadow(
        &self,
        client: &Client,
        records: &Records,
        mut record: NewBreadcrumb,
        share: u8,
        output: Output,
    ) -> anyhow::Result<()> {
        record.tags.extend([DRAFT_TAG.to_owned(), shadow_tag(share)]);
        let created = client.create(record, None).await?;
        let draft = client.get(created.id).await?;
        if !may_replace(&draft, &records.legacy) {
            client.delete(draft.id, None).await?;
            fail!(
                Refused,
                "only a curator, or the agent that wrote the tool.v1 (record {}), can give it a shadow",
                records.legacy.id
            );
        }
        set(&draft, share, client, output).await
    }

    /// Changes the share of the existing draft. 0: it stays a draft and no longer runs.
    pub(super) async fn set_share(
        &self,
        client: &Client,
        records: &Records,
        share: u8,
        output: Output,
    ) -> anyhow::Result<()> {
        let draft = self.draft(records)?;
        if share > 0 {
            check_repeatable(&records.legacy)?;
            check_repeatable(draft)?;
        }
        let mut tags = draft.tags.clone();
        tags.retain(|tag| !is_shadow_tag(tag));
        tags.extend((share > 0).then(|| shadow_tag(share)));
        let changed = change_tags(client, draft, tags).await?;
        if share > 0 && !may_replace(&changed, &records.legacy) {
            fail!(Refused, "only a curator, or the agent that wrote the tool.v1, can give it a shadow");
        }
        set(&changed, share, client, output).await
    }

    pub(super) async fn show_shadow(&self, client: &Client, draft: &Breadcrumb, output: Output) -> anyhow::Result<()> {
        let report = report_on(draft, &reports(client).await?);
        let share = share(draft).unwrap_or_default();
        if output.is_json() {
            let ready = report.is_ready();
            return output.json(&json!({"name": self.name, "shadow": share, "ready": ready, "report": report}));
        }
        let ShadowReport { name, same, different, failed, skipped, differences, .. } = &report;
        output.line(&format!("{name}: a shadow of {share} % of the calls (record {})", draft.id))?;
        output.line(&format!("{same} the same, {different} different, {failed} failed, {skipped} skipped"))?;
        for one in differences {
            let text = |key: &str| one[key].as_str().unwrap_or_default().to_owned();
            let values = match (&one["legacy"], &one["code"]) {
                (Value::Null, Value::Null) => String::new(),
                (legacy, code) => format!(": expected {legacy}, got {code}"),
            };
            output.line(&format!("  {} {}{values} (request {})", text("path"), text("message"), text("request")))?;
        }
        if report.is_ready() {
            output.line(&format!("Next: rcrt tool migrate {name} --promote"))?;
        }
        Ok(())
    }

    pub(super) async fn promote(&self, client: &Client, records: &Records, output: Output) -> anyhow::Result<()> {
        let draft = self.draft(records)?;
        let report = report_on(draft, &reports(client).await?);
        let name = &report.name;
        if report.different + report.failed > 0 {
            fail!(Usage, "the draft does not do the same; `rcrt tool migrate {name}` shows where, correct it first");
        }
        if !report.is_ready() {
            output.note(&format!("warning: only {} of {ENOUGH_SAME} calls were compared", report.same));
        }
        let tags = draft.tags.iter().filter(|tag| *tag != DRAFT_TAG && !is_shadow_tag(tag)).cloned().collect();
        let published = change_tags(client, draft, tags).await?;
        if is_draft(&published.tags) {
            fail!(Refused, "a curator has to publish {name} in this tenant: it is still a draft");
        }
        if !may_replace(&published, &records.legacy) {
            output.note("warning: the tool.v1 keeps its name; a curator has to promote the code");
        }
        note_secrets(client, &published, output).await?;
        output.either(
            &json!({"name": name, "id": published.id, "version": published.version}),
            &format!("{name} is published (record {}, version {})", published.id, published.version),
        )
    }

    pub(super) async fn retire(&self, client: &Client, records: &Records, output: Output) -> anyhow::Result<()> {
        let Records { legacy, code, .. } = records;
        let name = self.name.as_deref().unwrap_or_default();
        let holder = client.tools().await?.find(name).map(|tool| tool.tool_id);
        if holder.is_none() || holder != code.as_ref().map(|code| code.id) {
            fail!(Usage, "no tool.code.v1 answers the calls of {name} yet; `rcrt tool show {name}` shows what does");
        }
        let changes =
            BreadcrumbChanges { schema_name: Some(schema_names::TOOL_RETIRED.to_owned()), ..Default::default() };
        let retired = client.update(legacy.id, legacy.version, changes).await;
        let retired = retired.map_err(|error| changed_meanwhile(error, name))?;
        output.either(
            &json!({"name": name, "id": retired.id, "version": retired.version, "retired": true}),
            &format!("the tool.v1 {name} is retired (record {})", retired.id),
        )
    }

    fn draft<'r>(&self, records: &'r Records) -> Result<&'r Breadcrumb, Failure> {
        let name = self.name.as_deref().unwrap_or_default();
        let missing = || Failure::NotFound(format!("{name} has no draft; make one with --shadow 10%"));
        records.draft.as_ref().ok_or_else(missing)
    }
}

/// As the runners decide it.
fn may_replace(code: &Breadcrumb, legacy: &Breadcrumb) -> bool {
    code.tags.iter().any(|tag| tag == CURATORS_TOOL_TAG)
        || code.updated_by.is_some() && code.updated_by == legacy.created_by
}

async fn change_tags(client: &Client, record: &Breadcrumb, tags: Vec<String>) -> anyhow::Result<Breadcrumb> {
    let name = record.context.get("name").and_then(Value::as_str).unwrap_or_default();
    let changes = BreadcrumbChanges { tags: Some(tags), ..BreadcrumbChanges::default() };
    let updated = client.update(record.id, record.version, changes).await;
    updated.map_err(|error| changed_meanwhile(error, name))?;
    Ok(client.get(record.id).await?)
}

async fn set(draft: &Breadcrumb, share: u8, client: &Client, output: Output) -> anyhow::Result<()> {
    let name = draft.context.get("name").and_then(Value::as_str).unwrap_or_default();
    if share > 0 {
        note_secrets(client, draft, output).await?;
    }
    output.either(&json!({"name": name, "id": draft.id, "version": draft.version, "shadow": share}), &match share {
        0 => format!("{name} has no shadow; its draft stays (record {})", draft.id),
        _ => format!(
            "the draft of {name} (record {}) runs beside {share} % of the calls of other agents; its author's calls are \
             answered by the draft, and not compared",
            draft.id
        ),
    })
}

/// Says how to grant the secrets that the record lacks.
async fn note_secrets(client: &Client, record: &Breadcrumb, output: Output) -> anyhow::Result<()> {
    let Ok(tool) = read(record) else { return Ok(()) };
    let secrets = KnownSecrets::read(client).await?;
    for need in secrets.needs(Some((record.id, record.version)), &tool.required_secrets).unwrap_or_default() {
        if let Some(lack) = need.lack {
            output.note(&format!(
                "it needs {}: {}",
                need.name,
                lack.fix_command(need.name, &record.id.to_string(), &tool)
            ));
        }
    }
    Ok(())
}
