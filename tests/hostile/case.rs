//! One hostile tool: its file, and the expectations in the comment at its head. README.md describes
//! the format.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rcrt_breadcrumb::{ErrorCode, Isolation};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::steps::Step;

/// The families of attacks. Each is a folder.
pub const FAMILIES: [&str; 13] = [
    "api",
    "authoring",
    "cpu",
    "egress",
    "errors",
    "escape",
    "isolation",
    "limits",
    "memory",
    "pollution",
    "results",
    "secrets",
    "stack",
];
/// Families about what calls share. Their calls are repeated: the first call of a tool has its own
/// process, and only later ones share one.
const ABOUT_SHARING: [&str; 3] = ["escape", "isolation", "pollution"];
const TIMES_IF_SHARED: usize = 3;
/// Fields whose value is plain text. Those of [`MANY`] can occur several times.
const TEXT: [&str; 10] = [
    "status",
    "error_code",
    "rule",
    "message",
    "console",
    "never",
    "never_asked",
    "never_reached",
    "isolation",
    "cancel_at",
];
/// Fields whose value is JSON.
const JSON: [&str; 20] = [
    "details",
    "output",
    "arrived",
    "records",
    "permissions",
    "limits",
    "secrets",
    "required_secrets",
    "input",
    "input_schema",
    "output_schema",
    "times",
    "side_by_side",
    "calls",
    "request",
    "progress",
    "examples",
    "steps",
    "outcomes",
    "tools",
];
const MANY: [&str; 6] = ["message", "console", "never", "never_asked", "never_reached", "arrived"];

pub struct Case {
    /// `<family>/<name>.ts`.
    pub file: String,
    /// Its tool's name, unique among all cases: `<family>-<name>`.
    pub tool: String,
    /// A description of the attack.
    pub words: String,
    pub source: String,
    pub head: Head,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    Success,
    Error,
    /// The validators refuse the code, so it never runs.
    Refused,
    /// Each of `steps` says what comes of it.
    Steps,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Head {
    pub status: Status,
    pub error_code: Option<ErrorCode>,
    /// The validators' rule that refuses the code.
    pub rule: Option<String>,
    #[serde(default)]
    pub message: Vec<String>,
    pub details: Option<Value>,
    #[serde(default, deserialize_with = "even_null")]
    pub output: Option<Value>,
    /// Texts, each of which a console line contains.
    #[serde(default)]
    pub console: Vec<String>,
    #[serde(default)]
    pub never: Vec<String>,
    #[serde(default)]
    pub never_asked: Vec<String>,
    #[serde(default)]
    pub never_reached: Vec<String>,
    #[serde(default)]
    pub arrived: Vec<Arrived>,
    /// How many records have the tool's name as a tag afterwards.
    pub records: Option<usize>,
    #[serde(default)]
    pub permissions: Map<String, Value>,
    #[serde(default)]
    pub limits: Map<String, Value>,
    #[serde(default)]
    pub secrets: Vec<Secret>,
    /// Default: the names of `secrets`.
    pub required_secrets: Option<Vec<String>>,
    #[serde(default = "empty")]
    pub input: Value,
    #[serde(default = "any_object")]
    pub input_schema: Value,
    #[serde(default = "empty")]
    pub output_schema: Value,
    #[serde(default)]
    pub isolation: Isolation,
    /// How often the tool is called with `input`, one call after the other.
    #[serde(default = "one")]
    pub times: usize,
    /// All calls at once.
    #[serde(default)]
    pub side_by_side: bool,
    /// Different calls, in order, instead of the one that the other fields describe.
    #[serde(default)]
    pub calls: Vec<Call>,
    /// Also in the requests, beside the tool and its input.
    #[serde(default)]
    pub request: Request,
    /// The last progress of the call that subscribers see: the context of its record contains all
    /// of this.
    pub progress: Option<Value>,
    /// The call is cancelled when the tool has requested this path.
    pub cancel_at: Option<String>,
    /// The examples of the tool, instead of one that any output passes.
    pub examples: Option<Value>,
    /// What agents ask for, instead of calls of a tool that was written before.
    #[serde(default)]
    pub steps: Vec<Step>,
    /// How many of the steps end with each status.
    pub outcomes: Option<BTreeMap<String, usize>>,
    /// How many tools have the case's name afterwards.
    pub tools: Option<usize>,
}

/// One call and its outcome. Without an `error_code` it must succeed.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    #[serde(default = "empty")]
    pub input: Value,
    /// 1 or 2: two tenants, each with the same tool.
    #[serde(default = "one")]
    pub tenant: usize,
    pub error_code: Option<ErrorCode>,
    #[serde(default)]
    pub message: Vec<String>,
    pub details: Option<Value>,
    #[serde(default, deserialize_with = "even_null")]
    pub output: Option<Value>,
    /// Before the call the tool's record is deleted and created again, with the same name and code.
    #[serde(default)]
    pub rewritten: bool,
    /// Before the call the grants of its secrets are revoked.
    #[serde(default)]
    pub revoked: bool,
}

/// Further content of a request, such as its profile.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    pub tags: Vec<String>,
    pub context: Map<String, Value>,
}

/// A request that a server must have received: for this path, with each of the texts.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arrived {
    pub path: String,
    pub holds: Vec<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Secret {
    pub name: String,
    pub value: String,
    #[serde(default)]
    pub hosts: Vec<String>,
    #[serde(default)]
    pub readable: bool,
    #[serde(default = "yes")]
    pub granted: bool,
}

fn even_null<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

fn empty() -> Value {
    json!({})
}

fn any_object() -> Value {
    json!({"type": "object"})
}

fn one() -> usize {
    1
}

fn yes() -> bool {
    true
}

/// Every case's file, by family. A file outside of the families' folders is an error.
pub fn files(folder: &Path) -> Vec<(String, PathBuf)> {
    let mut found = Vec::new();
    for family in FAMILIES {
        let folder = folder.join(family);
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            found.push((format!("{family}/{name}"), path));
        }
    }
    found.sort();
    found
}

impl Case {
    /// The calls, in order.
    pub fn calls(&self) -> Vec<Call> {
        let is_about_sharing = ABOUT_SHARING.iter().any(|family| self.file.starts_with(&format!("{family}/")));
        let times = if is_about_sharing && self.head.isolation == Isolation::Call { TIMES_IF_SHARED } else { 1 };
        let calls = self.head.calls();
        std::iter::repeat_n(calls, times).flatten().collect()
    }

    /// `put_in` replaces `{{…}}` with names and ports.
    pub fn read(file: &str, text: &str, put_in: impl Fn(&str, &str) -> String) -> Result<Self, String> {
        let stem = file.strip_suffix(".ts").ok_or("a case is a .ts file")?;
        let tool = stem.replace('/', "-");
        let text = put_in(text, &tool);
        if let Some(name) = text.split("{{").skip(1).find_map(|rest| is_word(rest.split_once("}}")?.0)) {
            return Err(format!("{{{{{name}}}}} is not a known placeholder"));
        }
        let (comment, source) = text
            .strip_prefix("/**\n")
            .and_then(|rest| rest.split_once("\n */\n"))
            .ok_or("the file must begin with a comment /** … */ that describes the attack")?;
        let mut words = String::new();
        let mut fields: Vec<(String, String)> = Vec::new();
        for line in comment.lines() {
            let line = line.strip_prefix(" *").ok_or_else(|| format!("{line:?} does not start with ' *'"))?;
            let line = line.strip_prefix(' ').unwrap_or(line);
            match (field(line), fields.last_mut()) {
                (Some((name, value)), _) => fields.push((name.to_owned(), value.to_owned())),
                (None, Some((_, value))) if line.starts_with("  ") => {
                    value.push(' ');
                    value.push_str(line.trim());
                }
                (None, None) => {
                    words.push_str(line.trim());
                    words.push(' ');
                }
                (None, Some(_)) if line.trim().is_empty() => {}
                (None, Some(_)) => return Err(format!("{line:?} is not a field; a value continues after two spaces")),
            }
        }
        let words = words.trim().to_owned();
        if words.len() < 20 {
            return Err("the head must describe the attack in words".into());
        }
        let head = Head::read(&fields)?;
        head.check()?;
        Ok(Self { file: file.to_owned(), tool, words, source: source.to_owned(), head })
    }
}

fn is_word(text: &str) -> Option<&str> {
    (!text.is_empty() && text.chars().all(|c| c.is_ascii_lowercase() || c == '_')).then_some(text)
}

/// `name: value`, with the name of a field. The description before the fields can contain colons
/// too.
fn field(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once(':')?;
    (TEXT.contains(&name) || JSON.contains(&name)).then(|| (name, value.trim()))
}

impl Head {
    fn read(fields: &[(String, String)]) -> Result<Self, String> {
        let mut object = Map::new();
        for (name, text) in fields {
            let value = if TEXT.contains(&name.as_str()) {
                Value::from(text.as_str())
            } else {
                serde_json::from_str(text).map_err(|error| format!("{name}: {error}"))?
            };
            if MANY.contains(&name.as_str()) {
                let all = object.entry(name.clone()).or_insert_with(|| json!([]));
                all.as_array_mut().unwrap().push(value);
            } else if object.insert(name.clone(), value).is_some() {
                return Err(format!("{name} occurs twice"));
            }
        }
        serde_json::from_value(Value::Object(object)).map_err(|error| error.to_string())
    }

    /// Whether a run could violate the head.
    fn check(&self) -> Result<(), String> {
        if self.calls.iter().any(|call| !(1..=2).contains(&call.tenant)) {
            return Err("calls: tenant must be 1 or 2".into());
        }
        let says = match self.status {
            Status::Refused => self.rule.is_some(),
            Status::Steps => {
                !self.steps.is_empty() && (self.outcomes.is_some() || self.steps.iter().all(Step::has_expectation))
            }
            _ if !self.calls.is_empty() => {
                self.calls.iter().all(|call| call.error_code.is_some() || call.output.is_some())
            }
            Status::Error => self.error_code.is_some() && (!self.message.is_empty() || self.details.is_some()),
            Status::Success => self.error_code.is_none() && self.output.is_some(),
        };
        if says {
            return Ok(());
        }
        Err("the head is incomplete: success needs output; error needs error_code, and message or details; refused \
             needs rule; steps needs steps, each with expect, says or refused, or outcomes"
            .into())
    }

    /// The calls of one round, in order.
    pub fn calls(&self) -> Vec<Call> {
        if !self.calls.is_empty() {
            return self.calls.clone();
        }
        let call = Call {
            input: self.input.clone(),
            tenant: 1,
            error_code: self.error_code,
            message: self.message.clone(),
            details: self.details.clone(),
            output: self.output.clone(),
            rewritten: false,
            revoked: false,
        };
        vec![call; self.times]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(comment: &str) -> Result<Case, String> {
        let text = format!("/**\n{comment}\n */\nexport async function execute() {{}}\n");
        Case::read("cpu/a_case.ts", &text, |text, tool| text.replace("{{tool}}", tool))
    }

    const WORDS: &str = " * What is attacked, in words: enough of them.\n *\n";

    #[test]
    fn a_head_has_a_description_fields_and_long_values() {
        let case = read(&format!(
            "{WORDS} * status: success\n * output: [1,\n *   2]\n * never: a: b\n * never: c\n * limits: {{}}"
        ))
        .unwrap();
        assert_eq!(case.tool, "cpu-a_case");
        assert_eq!(case.words, "What is attacked, in words: enough of them.");
        assert_eq!(case.head.output, Some(json!([1, 2])));
        assert_eq!(case.head.never, ["a: b", "c"]);
        assert_eq!(case.head.calls().len(), 1);
        let null = read(&format!("{WORDS} * status: success\n * output: null\n * times: 3")).unwrap();
        assert_eq!((null.head.output.clone(), null.head.calls().len()), (Some(Value::Null), 3));
    }

    #[test]
    fn an_invalid_or_incomplete_head_is_refused() {
        for (comment, why) in [
            (" * status: success\n * output: 1", "in words"),
            (&*format!("{WORDS} * output: 1"), "status"),
            (&format!("{WORDS} * status: perhaps\n * output: 1"), "perhaps"),
            (&format!("{WORDS} * status: success"), "incomplete"),
            (&format!("{WORDS} * status: error\n * error_code: Timeout"), "incomplete"),
            (&format!("{WORDS} * status: error\n * error_code: Slow\n * message: x"), "Slow"),
            (&format!("{WORDS} * status: refused"), "incomplete"),
            (&format!("{WORDS} * status: success\n * output: {{"), "output"),
            (&format!("{WORDS} * status: success\n * output: 1\n * output: 2"), "twice"),
            (&format!("{WORDS} * status: success\n * output: 1\n * outputs: 2"), "not a field"),
            (&format!("{WORDS} * status: success\n * output: \"{{{{nothing}}}}\""), "is not a known placeholder"),
            (&format!("{WORDS} * status: success\n * calls: [{{\"input\": 1}}]"), "incomplete"),
            (&format!("{WORDS} * status: success\n * calls: [{{\"output\": 1, \"tenant\": 3}}]"), "tenant"),
        ] {
            let error = read(comment).err().unwrap_or_else(|| panic!("{comment} is read"));
            assert!(error.contains(why), "{error:?} does not say {why:?}");
        }
        assert!(Case::read("cpu/a.ts", "export async function execute() {}", |text, _| text.into()).is_err());
        assert!(Case::read("cpu/a.js", "/**\n */\n", |text, _| text.into()).is_err());
    }
}
