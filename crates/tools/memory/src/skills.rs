//! Skills: instructions that agents wrote. A skill is a guide (`tool.guide.v1`) with the tag
//! `skill`. Saving one under an existing name replaces it. Skills are shared by a tenant.

use rcrt_breadcrumb::{
    BreadcrumbChanges, BreadcrumbListItem, Guide, NewBreadcrumb, Records, StoreError, oldest_by_name,
    schema_names::TOOL_GUIDE,
};
use rcrt_executors::ToolCall;
use serde_json::{Map, Value, json};

/// The tag of every skill.
const TAG: &str = Guide::SKILL_TAG;
/// Each failed attempt means that a concurrent save succeeded.
const ATTEMPTS: usize = 20;

/// A skill as stored.
pub(crate) struct Skill {
    pub item: BreadcrumbListItem,
    pub guide: Guide,
}

/// By name.
pub(crate) async fn all(store: &dyn Records) -> Result<Vec<Skill>, StoreError> {
    let items = Guide::records(store, &[TAG]).await?;
    let skills = items.into_iter().filter_map(|item| {
        let guide = Guide::read(&item)?;
        Some((item.id, Skill { item, guide }))
    });
    Ok(oldest_by_name(skills, |skill| skill.guide.name.as_str()))
}

/// The records with this name, oldest first.
async fn named(store: &dyn Records, name: &str) -> Result<Vec<Skill>, StoreError> {
    let items = Guide::records(store, &[TAG, &tag(name)]).await?;
    let read = |item: BreadcrumbListItem| Guide::read(&item).map(|guide| Skill { item, guide });
    let mut found: Vec<Skill> = items.into_iter().filter_map(read).filter(|skill| skill.guide.name == name).collect();
    found.sort_by_key(|skill| skill.item.id);
    Ok(found)
}

pub(crate) async fn get(store: &dyn Records, name: &str) -> Result<Option<Skill>, StoreError> {
    Ok(named(store, name).await?.into_iter().next())
}

/// Returns whether a skill with this name existed.
pub(crate) async fn save(call: &ToolCall, guide: &Guide) -> Result<bool, StoreError> {
    let store = &*call.breadcrumbs;
    let mut created = None;
    for _ in 0..ATTEMPTS {
        let there = named(store, &guide.name).await?;
        let Some(oldest) = there.first() else {
            created = Some(store.create(record(call, guide), None).await?.id);
            continue;
        };
        if created == Some(oldest.item.id) {
            return remove(store, &there[1..]).await;
        }
        // A concurrent save can have created one too. Every writer keeps the oldest, and the last
        // one to look sees all.
        if let Some(own) = created.take() {
            match store.delete(own, None).await {
                Ok(()) | Err(StoreError::NotFound { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        let new = record(call, guide);
        let mut tags = new.tags;
        call.chain.mark(&mut tags, oldest.item.version.saturating_add(1));
        let changes = BreadcrumbChanges {
            title: Some(new.title),
            description: new.description,
            context: Some(new.context),
            tags: Some(tags),
            ..BreadcrumbChanges::default()
        };
        match store.update(oldest.item.id, oldest.item.version, changes).await {
            Ok(_) => return Ok(true),
            Err(StoreError::VersionConflict { .. } | StoreError::NotFound { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Err(StoreError::Unavailable(format!(
        "the skill {:?} was changed by too many concurrent saves; try again",
        guide.name
    )))
}

/// Returns whether it existed.
pub(crate) async fn delete(store: &dyn Records, name: &str) -> Result<bool, StoreError> {
    remove(store, &named(store, name).await?).await
}

/// Returns whether any of them still existed.
async fn remove(store: &dyn Records, skills: &[Skill]) -> Result<bool, StoreError> {
    let mut removed = false;
    for skill in skills {
        match store.delete(skill.item.id, None).await {
            Ok(()) => removed = true,
            Err(StoreError::NotFound { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(removed)
}

fn record(call: &ToolCall, guide: &Guide) -> NewBreadcrumb {
    let mut context = Map::new();
    for (field, value) in [
        ("name", json!(guide.name)),
        ("title", json!(guide.title)),
        ("summary", json!(guide.summary)),
        ("tools", json!(guide.tools)),
        ("content", json!(guide.content)),
    ] {
        context.insert(field.to_owned(), value);
    }
    if !guide.resources.is_empty() {
        context.insert("resources".to_owned(), Value::from(guide.resources.clone()));
    }
    let own = ["tool:guide".to_owned(), format!("guide:{}", guide.name), TAG.to_owned(), tag(&guide.name)];
    let mut tags: Vec<String> =
        own.into_iter().chain(call.request.workspace.clone()).chain(call.profiles.tags()).collect();
    call.chain.mark(&mut tags, 1);
    NewBreadcrumb {
        title: format!("Skill: {}", guide.name),
        description: Some(guide.summary.clone()),
        context,
        tags,
        schema_name: Some(TOOL_GUIDE.into()),
        ..NewBreadcrumb::default()
    }
}

fn tag(name: &str) -> String {
    format!("{TAG}:{name}")
}
