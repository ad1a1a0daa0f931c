//! Templates in the syntax of the original RCRT's hints: a subset of Handlebars without
//! computation.
//!
//! `{{context.title}}`, `{{items.length}}`, `{{items.[0].name}}`, `{{#each items}}{{name}}{{#unless
//! @last}}, {{/unless}}{{/each}}`, `{{#if (eq status "ok")}}…{{else}}…{{/if}}`, `{{context.tools |
//! keys | length}}`. Nothing is escaped, since the output is not HTML. Every step burns fuel, so
//! rendering terminates however the blocks are nested.

use serde_json::{Map, Value, json};

use super::fuel::{BoundedText, HintBudget};
use super::path::{self, HintStep};

const MAX_NODES: usize = 2_000;
const MAX_NESTING: usize = 16;

#[derive(Debug)]
pub(super) struct Template {
    nodes: Vec<Node>,
}

#[derive(Debug)]
enum Node {
    Text(String),
    Show(Expression),
    Choose { condition: Expression, is_negated: bool, then: Vec<Node>, otherwise: Vec<Node> },
    Each { items: Expression, body: Vec<Node>, otherwise: Vec<Node> },
}

#[derive(Debug)]
enum Expression {
    Literal(Value),
    Path { up: usize, steps: Vec<HintStep> },
    Call { helper: Helper, arguments: Vec<Expression> },
    Filtered(Box<Expression>, Filter),
}

#[derive(Debug, Clone, Copy)]
enum Helper {
    Eq,
    Ne,
    Gt,
    Lt,
    And,
    Or,
    Not,
}

#[derive(Debug, Clone, Copy)]
enum Filter {
    Keys,
    Length,
    First,
    Last,
    Json,
}

/// Where names are looked up: the innermost `each`, then the scopes around it.
struct Scope<'s> {
    this: &'s Value,
    /// `@index`, `@key`, `@first`, `@last`.
    marks: Map<String, Value>,
    around: Option<&'s Scope<'s>>,
}

impl Template {
    /// Parses a template. The error says what is wrong.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut parser = Parser { rest: text, nodes: 0 };
        let (nodes, end) = parser.block(0)?;
        match end {
            BlockEnd::Text => Ok(Self { nodes }),
            BlockEnd::Else => Err("has an {{else}} outside of a block".into()),
            BlockEnd::Close(name) => Err(format!("closes {{{{/{name}}}}}, which was not opened")),
        }
    }

    /// Renders the template for `root`. The text is cut at its size limit, or when the fuel runs
    /// out.
    pub(super) fn render(&self, root: &Value, fuel: &mut HintBudget) -> String {
        let mut text = BoundedText::new();
        render(&self.nodes, &Scope { this: root, marks: Map::new(), around: None }, &mut text, fuel);
        text.finish()
    }
}

fn render(nodes: &[Node], scope: &Scope<'_>, text: &mut BoundedText, fuel: &mut HintBudget) {
    for node in nodes {
        if text.is_full() {
            return;
        }
        if !fuel.burn(1) {
            text.cut();
            return;
        }
        match node {
            Node::Text(plain) => text.push(plain),
            Node::Show(expression) => text.push_value(&evaluate(expression, scope, fuel)),
            Node::Choose { condition, is_negated, then, otherwise } => {
                let holds = is_true(&evaluate(condition, scope, fuel)) != *is_negated;
                render(if holds { then } else { otherwise }, scope, text, fuel);
            }
            Node::Each { items, body, otherwise } => each(items, body, otherwise, scope, text, fuel),
        }
    }
}

fn each(
    items: &Expression,
    body: &[Node],
    otherwise: &[Node],
    scope: &Scope<'_>,
    text: &mut BoundedText,
    fuel: &mut HintBudget,
) {
    let value = evaluate(items, scope, fuel);
    let entries: Vec<(Value, &Value)> = match &value {
        Value::Array(items) => items.iter().enumerate().map(|(index, item)| (json!(index), item)).collect(),
        Value::Object(entries) => entries.iter().map(|(key, item)| (json!(key), item)).collect(),
        _ => Vec::new(),
    };
    if entries.is_empty() {
        return render(otherwise, scope, text, fuel);
    }
    let last = entries.len() - 1;
    for (index, (key, item)) in entries.into_iter().enumerate() {
        if text.is_full() || !fuel.burn(1) {
            return text.cut();
        }
        let mut marks = Map::new();
        marks.insert("@index".into(), json!(index));
        marks.insert("@key".into(), key);
        marks.insert("@first".into(), json!(index == 0));
        marks.insert("@last".into(), json!(index == last));
        render(body, &Scope { this: item, marks, around: Some(scope) }, text, fuel);
    }
}

/// Evaluates an expression. The fuel for copying a value is burnt before the copy.
fn evaluate(expression: &Expression, scope: &Scope<'_>, fuel: &mut HintBudget) -> Value {
    match expression {
        Expression::Literal(value) => value.clone(),
        Expression::Path { up, steps } => look_up(*up, steps, scope, fuel),
        Expression::Call { helper, arguments } => {
            let values: Vec<Value> = arguments.iter().map(|argument| evaluate(argument, scope, fuel)).collect();
            json!(helper.holds(&values))
        }
        Expression::Filtered(inner, filter) => filter.of(evaluate(inner, scope, fuel), fuel),
    }
}

fn look_up(up: usize, steps: &[HintStep], scope: &Scope<'_>, fuel: &mut HintBudget) -> Value {
    let mut at = scope;
    for _ in 0..up {
        let Some(around) = at.around else { return Value::Null };
        at = around;
    }
    let Some(HintStep::Name(first)) = steps.first() else { return copied(at.this, fuel) };
    if first == "this" {
        return found(at.this, steps.get(1..).unwrap_or_default(), fuel);
    }
    // The innermost scope with this name applies.
    let mut near = Some(at);
    while let Some(scope) = near {
        if !fuel.burn(1) {
            return Value::Null;
        }
        if let Some(mark) = scope.marks.get(first) {
            return mark.clone();
        }
        let is_here = match scope.this {
            Value::Object(entries) => entries.contains_key(first),
            Value::Array(_) => first == "length",
            _ => false,
        };
        if is_here {
            return found(scope.this, steps, fuel);
        }
        near = scope.around;
    }
    // Then the fields of the record's context.
    let mut root = at;
    while let Some(around) = root.around {
        root = around;
    }
    root.this.get("context").map_or(Value::Null, |context| found(context, steps, fuel))
}

fn found(root: &Value, steps: &[HintStep], fuel: &mut HintBudget) -> Value {
    match path::find(root, steps, fuel).first() {
        Some(found) => copied(found.value(), fuel),
        None => Value::Null,
    }
}

/// A copy of the value. Null if it would cost too much.
fn copied(value: &Value, fuel: &mut HintBudget) -> Value {
    if fuel.burn_for_copy(value) { value.clone() } else { Value::Null }
}

/// As in Handlebars, null, false, 0, an empty string and an empty array are false.
fn is_true(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(truth) => *truth,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(_) => true,
    }
}

impl Helper {
    fn holds(self, values: &[Value]) -> bool {
        let two = || Some((values.first()?, values.get(1)?));
        let numbers = || two().and_then(|(a, b)| Some((a.as_f64()?, b.as_f64()?)));
        match self {
            Self::Eq => two().is_some_and(|(a, b)| a == b),
            Self::Ne => two().is_some_and(|(a, b)| a != b),
            Self::Gt => numbers().is_some_and(|(a, b)| a > b),
            Self::Lt => numbers().is_some_and(|(a, b)| a < b),
            Self::And => values.iter().all(is_true),
            Self::Or => values.iter().any(is_true),
            Self::Not => !values.iter().any(is_true),
        }
    }
}

impl Filter {
    fn of(self, value: Value, fuel: &mut HintBudget) -> Value {
        match (self, value) {
            (Self::Keys, Value::Object(entries)) => entries.into_iter().map(|(key, _)| Value::from(key)).collect(),
            (Self::Length, Value::Array(items)) => items.len().into(),
            (Self::Length, Value::Object(entries)) => entries.len().into(),
            (Self::Length, Value::String(text)) => text.chars().count().into(),
            (Self::First, Value::Array(items)) => items.into_iter().next().unwrap_or_default(),
            (Self::Last, Value::Array(mut items)) => items.pop().unwrap_or_default(),
            // Each `json` doubles a text of quotes, so a few of these filters in a row could fill
            // all memory.
            (Self::Json, value) if fuel.burn_for_copy(&value) => value.to_string().into(),
            _ => Value::Null,
        }
    }
}

struct Parser<'t> {
    rest: &'t str,
    nodes: usize,
}

/// What a block was ended by.
enum BlockEnd {
    Text,
    Else,
    Close(String),
}

impl<'t> Parser<'t> {
    fn block(&mut self, nesting: usize) -> Result<(Vec<Node>, BlockEnd), String> {
        if nesting > MAX_NESTING {
            return Err(format!("has blocks nested deeper than {MAX_NESTING}"));
        }
        let mut nodes = Vec::new();
        loop {
            self.nodes += 1;
            if self.nodes > MAX_NODES {
                return Err(format!("has more than {MAX_NODES} parts"));
            }
            let Some(open) = self.rest.find("{{") else {
                push_text(&mut nodes, self.rest);
                self.rest = "";
                return Ok((nodes, BlockEnd::Text));
            };
            push_text(&mut nodes, &self.rest[..open]);
            let tag = self.tag(open)?;
            match tag.chars().next() {
                Some('!') => {}
                Some('#') => nodes.push(self.opened(tag[1..].trim(), nesting)?),
                Some('/') => return Ok((nodes, BlockEnd::Close(tag[1..].trim().to_owned()))),
                Some('>' | '&' | '^' | '*') => {
                    return Err(format!("has {{{{{}}}}}: partials and decorators are not supported", shorten(tag)));
                }
                _ if tag == "else" => return Ok((nodes, BlockEnd::Else)),
                _ => nodes.push(Node::Show(expression(tag)?)),
            }
        }
    }

    /// The text between the braces that open at this position.
    fn tag(&mut self, open: usize) -> Result<&'t str, String> {
        let from = &self.rest[open..];
        let (start, end) = if from.starts_with("{{!--") {
            ("{{", "--}}")
        } else if from.starts_with("{{{") {
            ("{{{", "}}}")
        } else {
            ("{{", "}}")
        };
        let inside = &from[start.len()..];
        let close = inside.find(end).ok_or_else(|| format!("has {} without {end}", shorten(from)))?;
        self.rest = &inside[close + end.len()..];
        Ok(inside[..close].trim().trim_matches('~').trim())
    }

    fn opened(&mut self, tag: &str, nesting: usize) -> Result<Node, String> {
        let (name, argument) = tag.split_once(char::is_whitespace).unwrap_or((tag, ""));
        if !matches!(name, "if" | "unless" | "each") {
            return Err(format!("has the block {{{{#{}}}}}; the blocks are if, unless and each", shorten(name)));
        }
        let argument = expression(argument)?;
        let (first, mut end) = self.block(nesting + 1)?;
        let mut otherwise = Vec::new();
        if let BlockEnd::Else = end {
            (otherwise, end) = self.block(nesting + 1)?;
        }
        match end {
            BlockEnd::Close(closed) if closed == name => {}
            _ => return Err(format!("opens {{{{#{name}}}}} and does not close it with {{{{/{name}}}}}")),
        }
        Ok(match name {
            "each" => Node::Each { items: argument, body: first, otherwise },
            _ => Node::Choose { condition: argument, is_negated: name == "unless", then: first, otherwise },
        })
    }
}

fn push_text(nodes: &mut Vec<Node>, text: &str) {
    if !text.is_empty() {
        nodes.push(Node::Text(text.to_owned()));
    }
}

fn shorten(text: &str) -> String {
    text.chars().take(40).collect()
}

/// `path`, `helper a b`, `(helper a b)`, `"text"`, `3`; then any number of `| filter`.
fn expression(text: &str) -> Result<Expression, String> {
    let text = text.trim();
    let mut parts = split(text, '|')?.into_iter();
    let mut made = call(parts.next().unwrap_or_default())?;
    for (count, name) in parts.enumerate() {
        let filter = match name.trim() {
            "keys" => Filter::Keys,
            "length" => Filter::Length,
            "first" => Filter::First,
            "last" => Filter::Last,
            "json" => Filter::Json,
            other => {
                return Err(format!(
                    "has the filter {:?}; the filters are keys, length, first, last, json",
                    shorten(other)
                ));
            }
        };
        if count >= MAX_NESTING {
            return Err(format!("has more than {MAX_NESTING} filters in a row"));
        }
        made = Expression::Filtered(Box::new(made), filter);
    }
    Ok(made)
}

fn call(text: &str) -> Result<Expression, String> {
    call_in(text, 0)
}

fn call_in(text: &str, nesting: usize) -> Result<Expression, String> {
    if nesting > MAX_NESTING {
        return Err(format!("has parentheses nested deeper than {MAX_NESTING}"));
    }
    let words = split(text.trim(), ' ')?;
    match words.as_slice() {
        [] => Err("has empty braces".into()),
        [one] => match one.strip_prefix('(').and_then(|inner| inner.strip_suffix(')')) {
            Some(inner) => call_in(inner, nesting + 1),
            None => atom(one),
        },
        [name, arguments @ ..] => {
            let (helper, wanted) = match *name {
                "eq" => (Helper::Eq, 2..=2),
                "ne" => (Helper::Ne, 2..=2),
                "gt" => (Helper::Gt, 2..=2),
                "lt" => (Helper::Lt, 2..=2),
                "and" => (Helper::And, 1..=16),
                "or" => (Helper::Or, 1..=16),
                "not" => (Helper::Not, 1..=1),
                other => {
                    return Err(format!("calls {:?}; the helpers are eq, ne, gt, lt, and, or, not", shorten(other)));
                }
            };
            if !wanted.contains(&arguments.len()) {
                return Err(format!("calls {name} with a wrong number of values: {}", arguments.len()));
            }
            let arguments = arguments.iter().map(|one| call_in(one, nesting + 1)).collect::<Result<_, _>>()?;
            Ok(Expression::Call { helper, arguments })
        }
    }
}

fn atom(text: &str) -> Result<Expression, String> {
    let quoted = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
    if let Some(inside) = quoted('"').or_else(|| quoted('\'')) {
        return Ok(Expression::Literal(inside.into()));
    }
    match text {
        "true" => return Ok(Expression::Literal(true.into())),
        "false" => return Ok(Expression::Literal(false.into())),
        "null" | "undefined" => return Ok(Expression::Literal(Value::Null)),
        "." => return Ok(Expression::Path { up: 0, steps: Vec::new() }),
        _ => {}
    }
    if let Ok(number) = text.parse::<serde_json::Number>() {
        return Ok(Expression::Literal(Value::Number(number)));
    }
    let (mut up, mut rest) = (0, text);
    while let Some(outer) = rest.strip_prefix("../") {
        (up, rest) = (up + 1, outer);
    }
    let rest = rest.strip_prefix("./").unwrap_or(rest);
    match path::parse(rest) {
        Some(steps) => Ok(Expression::Path { up, steps }),
        None => Err(format!("has {:?}, which is not a valid path, such as context.items.[0].name", shorten(text))),
    }
}

/// Splits at this separator, outside of quotes and parentheses.
fn split(text: &str, separator: char) -> Result<Vec<&str>, String> {
    let (mut parts, mut from, mut depth, mut quote) = (Vec::new(), 0, 0usize, None);
    for (index, character) in text.char_indices() {
        match (quote, character) {
            (Some(open), _) if open == character => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(character),
            (None, '(') => depth += 1,
            (None, ')') => depth = depth.checked_sub(1).ok_or("closes a parenthesis that was not opened")?,
            (None, _) => {
                let is_separator = character == separator || (separator == ' ' && character.is_whitespace());
                if is_separator && depth == 0 {
                    parts.push(&text[from..index]);
                    from = index + character.len_utf8();
                }
            }
        }
    }
    if quote.is_some() || depth > 0 {
        return Err("has a quote or a parenthesis that is not closed".into());
    }
    parts.push(&text[from..]);
    Ok(parts.into_iter().filter(|part| !part.trim().is_empty()).collect())
}
