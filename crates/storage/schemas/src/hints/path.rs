//! Paths in a value, as written in hints: `$.tools[*].name`, `context.items.[0]`, `a.b.length`.
//!
//! A small part of JSONPath: names, indices and wildcards, without filters and recursive descent,
//! so that a path costs no more than the values it visits.

use serde_json::Value;

use super::fuel::HintBudget;

/// The maximum number of steps of one path.
const MAX_STEPS: usize = 32;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum HintStep {
    Name(String),
    Index(usize),
    All,
}

/// What a path leads to: an existing value, or a computed number (`length`).
#[derive(Debug, Clone)]
pub(super) enum PathValue<'v> {
    Existing(&'v Value),
    Computed(Value),
}

impl PathValue<'_> {
    pub(super) fn value(&self) -> &Value {
        match self {
            Self::Existing(value) => value,
            Self::Computed(value) => value,
        }
    }
}

/// Parses a path. `None` if it is invalid. The leading `$` is optional.
pub(super) fn parse(text: &str) -> Option<Vec<HintStep>> {
    let text = text.trim();
    let mut rest = text.strip_prefix('$').unwrap_or(text);
    let mut steps = Vec::new();
    if rest.is_empty() {
        return (!text.is_empty()).then_some(steps);
    }
    if !rest.starts_with(['.', '[']) {
        let (step, left) = name(rest)?;
        steps.push(step);
        rest = left;
    }
    while !rest.is_empty() {
        if steps.len() >= MAX_STEPS {
            return None;
        }
        // Handlebars writes an index as `.[0]`.
        let after_dot = rest.strip_prefix('.');
        let step_text = after_dot.unwrap_or(rest);
        let (step, left) = match step_text.strip_prefix('[') {
            Some(bracket) => in_brackets(bracket)?,
            None => after_dot.and_then(name)?,
        };
        steps.push(step);
        rest = left;
    }
    Some(steps)
}

fn name(text: &str) -> Option<(HintStep, &str)> {
    if let Some(rest) = text.strip_prefix('*') {
        return Some((HintStep::All, rest));
    }
    let end = text.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '@' | '$'))).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    (!name.is_empty()).then(|| (HintStep::Name(name.to_owned()), rest))
}

fn in_brackets(text: &str) -> Option<(HintStep, &str)> {
    let (inside, rest) = match text.chars().next()? {
        quote @ ('"' | '\'') => {
            let (inside, rest) = text.get(1..)?.split_once(quote)?;
            return Some((HintStep::Name(inside.to_owned()), rest.strip_prefix(']')?));
        }
        _ => text.split_once(']')?,
    };
    match inside {
        "*" => Some((HintStep::All, rest)),
        number => number.parse().ok().map(|index| (HintStep::Index(index), rest)),
    }
}

/// Everything that the path leads to, in order. Fewer values if the fuel runs out.
pub(super) fn find<'v>(root: &'v Value, steps: &[HintStep], fuel: &mut HintBudget) -> Vec<PathValue<'v>> {
    let mut found = vec![PathValue::Existing(root)];
    for (index, step) in steps.iter().enumerate() {
        let is_last = index + 1 == steps.len();
        let mut next = Vec::new();
        for value in found {
            let PathValue::Existing(value) = value else { continue };
            if !fuel.burn(1) {
                return next;
            }
            match (step, value) {
                (HintStep::Name(name), Value::Object(entries)) => match entries.get(name) {
                    Some(value) => next.push(PathValue::Existing(value)),
                    None if is_last && name == "length" => next.push(PathValue::Computed(entries.len().into())),
                    None => {}
                },
                (HintStep::Name(name), Value::Array(items)) => {
                    if is_last && name == "length" {
                        next.push(PathValue::Computed(items.len().into()));
                    } else if let Some(item) = name.parse().ok().and_then(|index: usize| items.get(index)) {
                        next.push(PathValue::Existing(item));
                    }
                }
                (HintStep::Name(name), Value::String(text))
                    if is_last && name == "length" && fuel.burn(text.len() / 64) =>
                {
                    next.push(PathValue::Computed(text.chars().count().into()));
                }
                (HintStep::Index(index), Value::Array(items)) => {
                    next.extend(items.get(*index).map(PathValue::Existing));
                }
                (HintStep::All, Value::Array(items)) => {
                    next.extend(items.iter().take_while(|_| fuel.burn(1)).map(PathValue::Existing));
                }
                (HintStep::All, Value::Object(entries)) => {
                    next.extend(entries.values().take_while(|_| fuel.burn(1)).map(PathValue::Existing));
                }
                _ => {}
            }
        }
        found = next;
    }
    found
}
