//! The record by which a tenant chooses its skills.

use std::sync::Arc;

use rcrt_breadcrumb::{BreadcrumbQuery, Breadcrumbs, Role, StoreError, Tenancy};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

/// The schema name of the record. The newest one that a curator wrote counts.
pub use rcrt_breadcrumb::schema_names::A2A_CARD as CARD_SETTINGS;

/// The most skills of one tenant.
const MAX_SKILLS: usize = 200;
/// How many of the newest records are looked at.
const LOOKED_AT: u32 = 20;

/// What a tenant shows to other agents. Without such a record it offers no skill.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CardSettings {
    pub name: Option<String>,
    pub description: Option<String>,
    /// The tools that other agents can call.
    pub skills: Vec<SkillSettings>,
    /// The skill of a message that names none. With one skill, that one.
    pub default_skill: Option<String>,
}

/// A tool that is a skill: its name alone, or with texts in place of the tool's own.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "NameOrSkill")]
pub struct SkillSettings {
    /// The tool's name, which is the skill's id.
    pub tool: String,
    pub name: Option<String>,
    pub description: Option<String>,
    pub tags: Vec<String>,
    pub examples: Vec<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum NameOrSkill {
    Name(String),
    Skill {
        tool: String,
        name: Option<String>,
        description: Option<String>,
        #[serde(default)]
        tags: Vec<String>,
        #[serde(default)]
        examples: Vec<String>,
    },
}

impl From<NameOrSkill> for SkillSettings {
    fn from(given: NameOrSkill) -> Self {
        match given {
            NameOrSkill::Name(tool) => Self { tool, ..Self::default() },
            NameOrSkill::Skill { tool, name, description, tags, examples } => {
                Self { tool, name, description, tags, examples }
            }
        }
    }
}

impl CardSettings {
    /// The settings of a tenant, or none. `tenant` reads all records of it.
    ///
    /// A record that an agent without the role curator wrote last does not count, because it would
    /// open tools to other agents. `is_open`: every caller is the operator, so each record counts.
    pub async fn of(
        tenancy: &dyn Tenancy,
        owner_id: Uuid,
        tenant: &Arc<dyn Breadcrumbs>,
        is_open: bool,
    ) -> Result<Self, StoreError> {
        let query =
            BreadcrumbQuery { limit: LOOKED_AT, include_context: false, ..BreadcrumbQuery::of_schema(CARD_SETTINGS) };
        for row in tenant.list(&query).await?.into_iter().filter(|row| row.owner_id.is_none()) {
            let record = match tenant.get(row.id).await {
                Ok(record) => record,
                Err(StoreError::NotFound { .. }) => continue,
                Err(error) => return Err(error),
            };
            let is_curators = match record.updated_by.filter(|_| !is_open) {
                None => true,
                Some(author) => {
                    tenancy.agent(owner_id, author).await?.is_some_and(|agent| agent.roles.contains(&Role::Curator))
                }
            };
            if !is_curators {
                tracing::warn!(record = %row.id, "a record {CARD_SETTINGS} does not count: no curator wrote it");
                continue;
            }
            return match serde_json::from_value::<Self>(Value::Object(record.context)) {
                Ok(mut settings) => {
                    settings.skills.truncate(MAX_SKILLS);
                    Ok(settings)
                }
                Err(error) => {
                    tracing::warn!(record = %row.id, %error, "a record {CARD_SETTINGS} cannot be read");
                    Ok(Self::default())
                }
            };
        }
        Ok(Self::default())
    }

    /// The skill of this id.
    pub(crate) fn skill(&self, id: &str) -> Option<&SkillSettings> {
        self.skills.iter().find(|skill| skill.tool == id)
    }

    /// The skill of a message that names none.
    pub(crate) fn default_skill(&self) -> Option<&SkillSettings> {
        match (&self.default_skill, self.skills.as_slice()) {
            (Some(id), _) => self.skill(id),
            (None, [only]) => Some(only),
            (None, _) => None,
        }
    }
}
