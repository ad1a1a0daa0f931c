//! The embedded templates for new tools, with their placeholders filled in.

use std::collections::BTreeMap;

use clap::ValueEnum;
use rcrt_breadcrumb::Violations;
use rcrt_validate::Author;
use rcrt_validate::template::{TOOL_TEMPLATE, Template};

use crate::seed::SeedSet;

/// The available templates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TemplateKind {
    /// Searches a JSON API over HTTPS with a key, and maps its response
    HttpApi,
    /// Reads records from the store and summarizes them
    Data,
    /// Computes its output from its input only
    Transform,
    /// Works in two steps that events start: asks a question, and finishes when the answer arrives
    AsyncEvent,
}

impl TemplateKind {
    /// The template's `name`.
    fn name(self) -> &'static str {
        match self {
            Self::HttpApi => "http-api",
            Self::Data => "data",
            Self::Transform => "transform",
            Self::AsyncEvent => "async-event",
        }
    }
}

/// A file's name and text.
pub type File = (String, String);

/// Returns the files of the new tool: `<name>.json` and its source. `values` fill the template's
/// placeholders, including `name`.
pub fn instantiate(
    kind: TemplateKind,
    name: &str,
    mut values: BTreeMap<String, String>,
) -> Result<Vec<File>, Violations> {
    values.insert("name".into(), name.to_owned());
    let tool = find(kind)?.instantiate(&values)?;
    rcrt_validate::seed::read(name, &tool.json, Some(&tool.source)).map_err(|error| error.violations)?;
    Ok(vec![(format!("{name}.json"), tool.json), (format!("{name}.{}", tool.extension), tool.source)])
}

fn find(kind: TemplateKind) -> Result<Template, Violations> {
    let templates = SeedSet::embedded(Author::System, &[]).seeds.into_iter().map(|seed| seed.record);
    templates
        .filter(|record| record.schema_name.as_deref() == Some(TOOL_TEMPLATE))
        .filter_map(|record| Template::from_context(&record.context).ok())
        .find(|template| template.name == kind.name())
        .ok_or_else(|| Violations::one("template", format!("{} is not included in this program", kind.name())))
}
