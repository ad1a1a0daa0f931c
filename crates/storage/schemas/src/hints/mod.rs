//! `llm_hints`: how a record is shortened for a model. Fields are included, excluded and renamed.
//! Then rules create new fields from the result. A hint shows only what the record has, within its
//! cost limits.

mod filter;
mod format;
mod fuel;
mod path;
mod template;

use rcrt_breadcrumb::{BreadcrumbView, Violations, nearest_names};
use serde_json::{Map, Value, json};

use self::format::Format;
use self::fuel::HintBudget;
use self::template::Template;

/// The keys that have an effect. Other keys are notes for readers of the record.
const KEYS: [&str; 6] = ["include", "exclude", "rename", "template", "transform", "mode"];
/// The maximum output of the rules of one view, in bytes of its JSON text.
pub const MAX_VIEW_BYTES: usize = fuel::BYTES;
const MAX_ENTRIES: usize = 100;
const MAX_PATH: usize = 300;
const MAX_TEMPLATE: usize = 16 * 1024;
/// The value of a rule whose output would exceed the limit of a view.
const TOO_LARGE: &str = "… (too large for a view)";
/// The field for the output of the top-level `template`.
const TEXT: &str = "text";

/// Hints that can be applied.
#[derive(Debug, Default)]
pub struct Hints {
    include: Vec<String>,
    exclude: Vec<String>,
    rename: Vec<(String, String)>,
    rules: Vec<(String, Rule)>,
    /// Whether the rules' output is added to the fields instead of replacing them.
    merges: bool,
}

#[derive(Debug)]
enum Rule {
    Template(Template),
    Extract(Vec<path::HintStep>),
    Literal(Value),
    Format(Format),
}

impl Hints {
    /// Reads hints. Returns the valid part, and the violations with their fields below `field`. The
    /// valid part is returned even if there are violations: hints that were stored without a check
    /// must still exclude fields.
    pub fn read(field: &str, hints: &Value) -> (Self, Violations) {
        let mut found = Violations::default();
        let mut read = Self::default();
        let Value::Object(hints) = hints else {
            found.add(field, "must be an object, such as {\"exclude\": [\"internal\"]}");
            return (read, found);
        };
        for key in hints.keys().filter(|key| !KEYS.contains(&key.as_str())) {
            if let Some(near) = nearest_names(key, KEYS.into_iter()).first() {
                found.add(format!("{field}.{key}"), format!("is not a known field; did you mean {near}?"));
            }
        }
        read.include = paths(&mut found, &format!("{field}.include"), hints.get("include"));
        read.exclude = paths(&mut found, &format!("{field}.exclude"), hints.get("exclude"));
        read.rename = renames(&mut found, &format!("{field}.rename"), hints.get("rename"));
        read.merges = match hints.get("mode") {
            None | Some(Value::Null) => false,
            Some(Value::String(mode)) if mode == "merge" => true,
            // RCRT's own records have `transform` if a template replaces the whole context.
            Some(Value::String(mode)) if mode == "replace" || mode == "transform" => false,
            Some(_) => {
                found.add(format!("{field}.mode"), "must be replace or merge");
                false
            }
        };
        match hints.get("template") {
            None | Some(Value::Null) => {}
            Some(Value::String(text)) => {
                if let Some(rule) = template(&mut found, &format!("{field}.template"), text) {
                    read.rules.push((TEXT.to_owned(), rule));
                }
            }
            Some(_) => {
                found.add(format!("{field}.template"), "must be a string, such as \"{{title}}: {{context.summary}}\"");
            }
        }
        match hints.get("transform") {
            None | Some(Value::Null) => {}
            Some(Value::Object(rules)) if rules.len() <= MAX_ENTRIES => {
                for (name, given) in rules {
                    let field_path = format!("{field}.transform.{name}");
                    if let Some(rule) = rule(&mut found, &field_path, given) {
                        read.rules.push((name.clone(), rule));
                    }
                }
            }
            Some(_) => {
                let message = format!("must be an object of at most {MAX_ENTRIES} rules, each with its type");
                found.add(format!("{field}.transform"), message);
            }
        }
        (read, found)
    }

    /// The context as these hints show it.
    pub fn apply(&self, view: &BreadcrumbView) -> Map<String, Value> {
        let mut context = if self.include.is_empty() {
            view.context.clone()
        } else {
            filter::only(&view.context, &both(&self.include))
        };
        if !self.exclude.is_empty() {
            context = filter::without(&context, &both(&self.exclude));
        }
        for (path, name) in &self.rename {
            for path in filter::within_context(path) {
                filter::rename(&mut context, path, name);
            }
        }
        if self.rules.is_empty() {
            return context;
        }
        let root = self.root(view, context);
        let mut fuel = HintBudget::default();
        let mut made = Map::new();
        for (name, rule) in &self.rules {
            made.insert(name.clone(), rule.apply(&root, &mut fuel));
        }
        match root {
            Value::Object(mut root) if self.merges => match root.remove("context") {
                Some(Value::Object(mut context)) => {
                    context.extend(made);
                    context
                }
                _ => made,
            },
            _ => made,
        }
    }

    /// What templates see: the record's fields that are not excluded, and the filtered context.
    fn root(&self, view: &BreadcrumbView, context: Map<String, Value>) -> Value {
        let mut root = Map::new();
        root.insert("id".into(), json!(view.id));
        root.insert("title".into(), json!(view.title));
        root.insert("description".into(), json!(view.description));
        root.insert("semantic_version".into(), json!(view.semantic_version));
        root.insert("tags".into(), json!(view.tags));
        root.insert("schema_name".into(), json!(view.schema_name));
        root.insert("version".into(), json!(view.version));
        root.insert("updated_at".into(), json!(view.updated_at));
        root.retain(|name, _| !self.exclude.iter().any(|path| path == name));
        root.insert("context".into(), Value::Object(context));
        Value::Object(root)
    }
}

impl Rule {
    fn apply(&self, root: &Value, fuel: &mut HintBudget) -> Value {
        let context = root.get("context").unwrap_or(&Value::Null);
        let value = match self {
            Self::Template(template) => Value::String(template.render(root, fuel)),
            Self::Format(format) => Value::String(format.render(context, fuel)),
            Self::Literal(value) => value.clone(),
            Self::Extract(steps) => {
                let found = path::find(context, steps, fuel);
                // Check the size before copying.
                if !found.iter().all(|one| fuel.spend_for(one.value())) {
                    return TOO_LARGE.into();
                }
                let mut values = found.into_iter().map(|one| one.value().clone());
                return match (values.next(), values.next()) {
                    (None, _) => Value::Null,
                    (Some(one), None) => one,
                    (Some(first), Some(second)) => [first, second].into_iter().chain(values).collect(),
                };
            }
        };
        if fuel.spend_for(&value) { value } else { TOO_LARGE.into() }
    }
}

/// Each path, and the same path without a leading `context.`.
fn both(paths: &[String]) -> Vec<&str> {
    paths.iter().flat_map(|path| filter::within_context(path)).collect()
}

fn paths(found: &mut Violations, field: &str, given: Option<&Value>) -> Vec<String> {
    let items = match given {
        None | Some(Value::Null) => return Vec::new(),
        Some(Value::Array(items)) if items.len() <= MAX_ENTRIES => items,
        Some(_) => {
            found.add(field, format!("must be an array of at most {MAX_ENTRIES} paths, such as [\"user.email\"]"));
            return Vec::new();
        }
    };
    let mut paths = Vec::new();
    for (index, item) in items.iter().enumerate() {
        match item.as_str().filter(|path| is_path(path)) {
            Some(path) => paths.push(filter::plain(path)),
            None => found.add(format!("{field}[{index}]"), format!("must be a path of 1 to {MAX_PATH} characters")),
        }
    }
    paths
}

fn renames(found: &mut Violations, field: &str, given: Option<&Value>) -> Vec<(String, String)> {
    let entries = match given {
        None | Some(Value::Null) => return Vec::new(),
        Some(Value::Object(entries)) if entries.len() <= MAX_ENTRIES => entries,
        Some(_) => {
            let message =
                format!("must be an object of at most {MAX_ENTRIES} names, such as {{\"user.mail\": \"email\"}}");
            found.add(field, message);
            return Vec::new();
        }
    };
    let mut renames = Vec::new();
    for (path, name) in entries {
        match name.as_str().filter(|name| is_path(name) && is_path(path)) {
            Some(name) => renames.push((filter::plain(path), name.to_owned())),
            None => found.add(format!("{field}.{path}"), format!("must be a new name of 1 to {MAX_PATH} characters")),
        }
    }
    renames
}

fn is_path(path: &str) -> bool {
    !path.trim().is_empty() && path.chars().count() <= MAX_PATH
}

fn template(found: &mut Violations, field: &str, text: &str) -> Option<Rule> {
    if text.len() > MAX_TEMPLATE {
        found.add(field, format!("is {} bytes; at most {MAX_TEMPLATE} are allowed", text.len()));
        return None;
    }
    Template::parse(text).map(Rule::Template).map_err(|why| found.add(field, why)).ok()
}

fn rule(found: &mut Violations, field: &str, given: &Value) -> Option<Rule> {
    let kind = given.get("type").and_then(Value::as_str).unwrap_or_default();
    let text = |found: &mut Violations, key: &str, example: &str| match given.get(key).and_then(Value::as_str) {
        Some(text) if text.len() <= MAX_TEMPLATE => Some(text),
        _ => {
            found.add(
                format!("{field}.{key}"),
                format!("must be a string of at most {MAX_TEMPLATE} bytes, such as {example}"),
            );
            None
        }
    };
    match kind {
        "template" => {
            let given = text(found, "template", "\"{{context.items.length}} items\"")?;
            template(found, &format!("{field}.template"), given)
        }
        "format" => {
            text(found, "format", "\"User ({timestamp}): {content}\"").map(|given| Rule::Format(Format::parse(given)))
        }
        "extract" => {
            let given = text(found, "value", "\"$.tools[*].name\"")?;
            let steps = path::parse(given).map(Rule::Extract);
            if steps.is_none() {
                let message = "must be a path of names, indices and wildcards, such as $.tools[*].name; filters and .. are not supported";
                found.add(format!("{field}.value"), message);
            }
            steps
        }
        "literal" => match given.get("literal") {
            Some(value) => Some(Rule::Literal(value.clone())),
            None => {
                found.add(format!("{field}.literal"), "is required: any JSON");
                None
            }
        },
        "jq" => {
            found.add(format!("{field}.type"), "jq is not supported; use template, extract, literal or format");
            None
        }
        _ => {
            found.add(format!("{field}.type"), "must be template, extract, literal or format");
            None
        }
    }
}
