//! A script in the place of an agent: it corrects a tool only by what the responses name, and by
//! the guide.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;

use rcrt_breadcrumb::{Events, Records};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use crate::authoring::{agent, ask, call};
use crate::process::{Installation, PATIENCE};

/// More rounds than the script needs.
const MAX_ROUNDS: usize = 20;

/// What the API answers that the tool calls. The agent knows it, and nobody tells the tool's author
/// that the amount is a text.
const ANSWER: &str = r#"{"converted": "21.50"}"#;

/// Everything that can be wrong: an import, no execute, a host that is not public and not the one
/// that the code asks, an output of another type than the schema says, and no example.
fn broken() -> Value {
    let source = "import rates from \"rates\";\n\
                  async function convert(input: { amount: number; to: string }) {\n  \
                  if (input.amount === 0) return { converted: \"0\" };\n  \
                  const response = await fetch(`https://rates.example.com/v1?to=${input.to}`);\n  \
                  return { converted: (await response.json()).converted };\n}\n";
    json!({
        "name": "convert",
        "description": "Converts an amount into another currency.",
        "version": "1.0.0",
        "code": {"language": "typescript", "source": source},
        "input_schema": {
            "type": "object",
            "properties": {
                "amount": {"type": "number", "description": "The amount."},
                "to": {"type": "string", "description": "The code of the currency."}
            },
            "required": ["amount", "to"]
        },
        "output_schema": {
            "type": "object",
            "properties": {"converted": {"type": "number", "description": "The converted amount."}},
            "required": ["converted"]
        },
        "permissions": {"net": ["localhost"]}
    })
}

/// One thing that is wrong, as a response names it.
#[derive(Debug, Clone)]
struct Finding {
    rule: String,
    field: String,
    line: Option<usize>,
    message: String,
    fix: String,
}

impl Finding {
    fn of(finding: &Value) -> Self {
        let text = |key: &str| finding[key].as_str().unwrap_or_default().to_owned();
        let line = finding["line"].as_u64().map(|line| usize::try_from(line).unwrap());
        Self { rule: text("rule"), field: text("field"), line, message: text("message"), fix: text("fix") }
    }

    /// `<file>:<line>:<column>: <message> [<rule>]; fix: <fix>`, or with the field in place of the
    /// position.
    fn read(text: &str) -> Self {
        let (text, fix) = text.split_once("; fix: ").unwrap_or((text, ""));
        let (text, rule) = text.strip_suffix(']').and_then(|text| text.rsplit_once(" [")).unwrap_or((text, ""));
        let (place, rest) = text.split_once(": ").unwrap();
        let line = place.rsplit(':').nth(1).and_then(|line| line.parse().ok());
        let (field, message) = if line.is_some() { ("", rest) } else { rest.split_once(": ").unwrap_or(("", rest)) };
        let owned = str::to_owned;
        Self { rule: owned(rule), field: owned(field), line, message: owned(message), fix: owned(fix) }
    }

    /// What the reports of examples say, for those that did not pass.
    fn of_examples(examples: &Value) -> Vec<Self> {
        let reports = examples.as_array().into_iter().flatten().enumerate();
        let found = reports.filter_map(|(index, report)| {
            let rule = match report["status"].as_str().unwrap() {
                "failed" => "example-fails",
                "not_run" => "example-not-run",
                _ => return None,
            };
            let message = report["reason"].as_str().unwrap_or_default().to_owned();
            Some(Self {
                rule: rule.into(),
                field: format!("examples[{index}]"),
                line: None,
                message,
                fix: String::new(),
            })
        });
        found.collect()
    }
}

/// The text between two others.
#[track_caller]
fn between<'t>(text: &'t str, before: &str, after: &str) -> &'t str {
    let rest = text.split_once(before).unwrap_or_else(|| panic!("{before:?} is not in {text:?}")).1;
    rest.split_once(after).unwrap_or_else(|| panic!("{after:?} does not follow in {text:?}")).0
}

/// `$.a.b` or `output.a.b` as a pointer to it.
fn pointer(path: &str) -> String {
    path.split('.').skip(1).flat_map(|step| ["/", step]).collect()
}

/// A value that fits a property: the smallest of its type.
fn smallest(schema: &Value) -> Value {
    match schema["type"].as_str() {
        Some("number" | "integer") => json!(1),
        Some("string") => json!("a"),
        _ => json!({}),
    }
}

/// Applies the fix of one finding to the definition.
fn correct(spec: &mut Value, finding: &Finding, examples: &Value) {
    let source = spec["code"]["source"].as_str().unwrap().to_owned();
    match finding.rule.as_str() {
        "no-import" => {
            let kept = source.lines().enumerate().filter(|(index, _)| Some(index + 1) != finding.line);
            let kept: Vec<&str> = kept.map(|(_, line)| line).collect();
            spec["code"]["source"] = (kept.join("\n") + "\n").into();
        }
        "execute-exported" | "execute-async" => {
            let head = format!("export {}(", between(&finding.fix, "export ", "("));
            let begin = source.find("async function").or_else(|| source.find("function")).unwrap();
            let end = begin + source[begin..].find('(').unwrap() + 1;
            spec["code"]["source"] = format!("{}{head}{}", &source[..begin], &source[end..]).into();
        }
        "net-host" => {
            let index: usize = between(&finding.field, "[", "]").parse().unwrap();
            spec["permissions"]["net"][index] = between(&finding.fix, "such as ", ";").into();
        }
        "example-required" => {
            let properties = spec["input_schema"]["properties"].as_object().unwrap().iter();
            let input: serde_json::Map<_, _> = properties.map(|(key, of)| (key.clone(), smallest(of))).collect();
            let output = smallest(&spec["output_schema"]["properties"]["converted"]);
            spec["examples"] = json!([{"description": "One", "input": input, "output": {"converted": output}}]);
        }
        "example-fails" => correct_example(spec, finding, &examples[0]),
        "example-not-run" => {
            let request = between(&finding.message, "sends ", ",");
            let (method, url) = request.split_once(' ').unwrap();
            let body: Value = serde_json::from_str(ANSWER).unwrap();
            spec["examples"][0]["http"] =
                json!([{"request": {"method": method, "url": url}, "response": {"body": body}}]);
        }
        // The example was written before the schema was corrected.
        "example-conforms" => {
            let path = finding.field.replace("examples[0].output", "$");
            let key = path.trim_start_matches("$.");
            spec["examples"][0]["output"][key] = smallest(&spec["output_schema"]["properties"][key]);
        }
        rule => panic!("nothing says how to correct {rule}: {finding:?}"),
    }
}

fn correct_example(spec: &mut Value, finding: &Finding, report: &Value) {
    if finding.message.contains("PermissionDenied") {
        let host = between(&finding.message, "\"", "\"").to_owned();
        spec["permissions"]["net"] = json!([host]);
    } else if let Some((_, misfit)) = finding.message.split_once("does not fit output_schema: ") {
        let (path, _) = misfit.split_once(": ").unwrap();
        let found = &report["actual"].pointer(&pointer(path)).unwrap();
        let schema = spec["output_schema"]["properties"].pointer_mut(&pointer(path)).unwrap();
        schema["type"] = if found.is_string() { "string" } else { "number" }.into();
    } else {
        for difference in report["differences"].as_array().unwrap() {
            let path = pointer(difference["path"].as_str().unwrap());
            *spec["examples"][0]["output"].pointer_mut(&path).unwrap() = difference["actual"].clone();
        }
    }
}

/// The rules that the guide explains, with what to do about each.
fn explained(guide: &str) -> BTreeMap<String, String> {
    let rows = guide.lines().filter_map(|line| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [rule, _, what_to_do] = cells[..] else { return None };
        Some((rule.trim_matches('`').to_owned(), what_to_do.to_owned()))
    });
    rows.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_tool_is_corrected_by_its_responses_until_others_can_call_it() {
    let (installation, up, curator) = Installation::up().await;
    let (author, other) =
        (agent(&installation, &curator, "author").await, agent(&installation, &curator, "other").await);
    let (mut events, mut others) = (author.events(None).await.unwrap(), other.events(None).await.unwrap());
    let guide = call(&author, &mut events, "get_tool_guide", json!({"name": "tool-authoring"})).await.output.unwrap();
    let explained = explained(guide.as_str().unwrap());
    assert!(explained.len() >= 10, "{explained:?}");

    let (mut spec, mut rounds) = (broken(), Vec::new());
    loop {
        let made = curator.list(&rcrt_breadcrumb::BreadcrumbQuery::tagged("tool:convert")).await.unwrap();
        let mode = if made.is_empty() { "create" } else { "update" };
        let response = ask(&author, &mut events, &spec, mode).await;
        if response["status"] != "rejected" && response["draft"] == false {
            break;
        }
        assert!(rounds.len() < MAX_ROUNDS, "{rounds:?}: {response:?}");
        let validation = &response["validation"];
        let named = |kind: &str| validation[kind].as_array().unwrap().iter().map(Finding::of).collect::<Vec<_>>();
        let blocking = named("warnings").into_iter().filter(|warning| warning.rule == "example-not-run");
        let findings: Vec<Finding> = named("errors").into_iter().chain(blocking).collect();
        assert!(!findings.is_empty(), "{response:?}");
        for finding in &findings {
            assert!(!finding.fix.is_empty() || explained.contains_key(&finding.rule), "no fix: {finding:?}");
            correct(&mut spec, finding, &response["examples"]);
        }
        rounds.push(findings.into_iter().map(|finding| finding.rule).collect::<Vec<_>>());
    }
    assert!(rounds.len() >= 5, "{rounds:?}");
    let tools = curator.list(&rcrt_breadcrumb::BreadcrumbQuery::tagged("tool:convert")).await.unwrap();
    assert_eq!(tools.len(), 1);
    let output = call(&other, &mut others, "convert", json!({"amount": 0, "to": "EUR"})).await.output;
    assert_eq!(output, Some(json!({"converted": "0"})), "{rounds:?}");
    assert_eq!(up.stop().await, Some(0), "{}", installation.log());
}

/// `rcrt tool dev`, which prints a line of JSON for each change.
struct Dev {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    /// Where files are written before they are moved to their place, so that none is seen half
    /// written.
    aside: TempDir,
}

impl Dev {
    fn start(installation: &Installation, tools: &Path) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_rcrt"))
            .args(["tool", "dev", "--publish", "--output", "json"])
            .arg(tools)
            .env("RCRT_DATA", installation.data.path())
            .env_remove("DATABASE_URL")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines, aside: tempfile::tempdir().unwrap() }
    }

    async fn next(&mut self) -> Value {
        let line = tokio::time::timeout(PATIENCE, self.lines.next_line()).await.expect("a line is printed");
        serde_json::from_str(&line.unwrap().unwrap()).unwrap()
    }

    /// Saves one file of the tool, if it changed.
    fn save(&self, path: &Path, text: &str) {
        if std::fs::read_to_string(path).is_ok_and(|old| old == text) {
            return;
        }
        let aside = self.aside.path().join("saved");
        std::fs::write(&aside, text).unwrap();
        std::fs::rename(&aside, path).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_file_is_corrected_by_the_lines_of_dev_until_it_is_published() {
    let (installation, up, curator) = Installation::up().await;
    let other = agent(&installation, &curator, "other").await;
    let mut others = other.events(None).await.unwrap();

    let folder = tempfile::tempdir().unwrap();
    let (json_file, source_file) = (folder.path().join("convert.json"), folder.path().join("convert.ts"));
    let files = |spec: &Value| {
        let (mut context, source) = (spec.clone(), spec["code"]["source"].as_str().unwrap().to_owned());
        context.as_object_mut().unwrap().remove("code");
        let record = json!({"schema_name": "tool.code.v1", "title": "convert", "tags": ["tool"], "context": context});
        (serde_json::to_string_pretty(&record).unwrap(), source)
    };
    let (mut spec, mut rounds) = (broken(), Vec::new());
    let (record, source) = files(&spec);
    std::fs::write(&source_file, source).unwrap();
    std::fs::write(&json_file, record).unwrap();
    let mut dev = Dev::start(&installation, folder.path());
    let published = loop {
        let line = dev.next().await;
        let errors = line["errors"].as_array().unwrap().iter().map(|error| Finding::read(error.as_str().unwrap()));
        let finding = errors.chain(Finding::of_examples(&line["examples"])).next();
        // One correction for each line: it changes one file, so there is one line for it.
        let Some(finding) = finding else { break line["published"].clone() };
        assert!(rounds.len() < MAX_ROUNDS, "{rounds:?}: {line}");
        correct(&mut spec, &finding, &line["examples"]);
        rounds.push(finding.rule);
        let (record, source) = files(&spec);
        dev.save(&json_file, &record);
        dev.save(&source_file, &source);
    };
    assert!(rounds.len() >= 5, "{rounds:?}");
    assert_eq!(published["is_in_effect"], true, "{published}");
    let output = call(&other, &mut others, "convert", json!({"amount": 0, "to": "EUR"})).await.output;
    assert_eq!(output, Some(json!({"converted": "0"})), "{rounds:?}");
    dev.child.kill().await.unwrap();
    assert_eq!(up.stop().await, Some(0), "{}", installation.log());
}
