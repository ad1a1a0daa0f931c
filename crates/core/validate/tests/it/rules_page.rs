//! bootstrap-breadcrumbs/README.md lists exactly the existing rules, and says for each whether it
//! is an error or a warning, and for which authors that differs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use rcrt_breadcrumb::{ToolDefinition, Violations};
use rcrt_validate::{Author, tool_as};
use serde_json::{Value, json};

use crate::read;

fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

/// The last column of the table, by rule.
fn listed() -> BTreeMap<String, String> {
    let page = std::fs::read_to_string(top().join("bootstrap-breadcrumbs/README.md")).unwrap();
    let (_, table) =
        page.split_once("| rule | requirement | error or warning |\n").expect("the table of rules is there");
    let rows = table.lines().take_while(|line| line.starts_with('|')).skip(1);
    let cells = rows.map(|row| row.trim_matches('|').split(" | ").map(str::trim).collect::<Vec<_>>());
    cells
        .flat_map(|cells| {
            assert_eq!(cells.len(), 3, "{cells:?}");
            let says = cells[2].to_owned();
            cells[0].split(", ").map(move |rule| (rule.trim_matches('`').to_owned(), says.clone())).collect::<Vec<_>>()
        })
        .collect()
}

#[test]
fn the_page_lists_exactly_the_existing_rules() {
    let code: Vec<String> = sources(&top().join("crates/core/validate/src"))
        .into_iter()
        // Its names are matchers of expected outputs, not rules.
        .filter(|file| !file.ends_with("expected.rs"))
        .chain([top().join("crates/core/typescript/src/inspect.rs")])
        .map(|file| std::fs::read_to_string(file).unwrap())
        .collect();
    // The rules in `Finding::new("rule", …)`, and the rules of the syntax tree.
    let rules: BTreeSet<String> = code
        .iter()
        .flat_map(|text| text.split("Finding::new(").skip(1).chain(text.split("=> ").skip(1)))
        .filter_map(|text| text.trim_start().strip_prefix('"')?.split_once('"'))
        .map(|(rule, _)| rule.to_owned())
        .filter(|rule| rule.chars().all(|c| c.is_ascii_lowercase() || c == '-'))
        // The rule of what cannot be read as a definition at all. It is stated above the table.
        .filter(|rule| rule != "field")
        .collect();
    assert!(rules.len() > 20, "{rules:?}");
    let listed: BTreeSet<String> = listed().into_keys().collect();
    assert!(rules.is_subset(&listed), "not listed: {:?}", rules.difference(&listed));
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

/// For each rule, a `tool.code.v1` and a `tool.v1` that violate it, as changes to a valid one. Null
/// if no tool of that kind can violate it.
fn broken() -> Vec<(&'static str, Value, Value)> {
    let code = |source: &str| json!({"code": {"language": "typescript", "source": source}});
    let execute = |body: &str| code(&format!("export async function execute() {{ {body} }}"));
    let in_both = |changes: Value| (changes.clone(), changes);
    let schema = |field: &str, schema: Value| {
        let legacy = if field == "input_schema" { "inputSchema" } else { "outputSchema" };
        let also: Value = json!([{"description": "One", "input": {"a": 1, "b": 2}}]);
        (json!({field: schema, "examples": also}), json!({"definition": {legacy: schema, "examples": also}}))
    };
    let (none, hosts) = (Value::Null, ["a", "b", "c", "d", "e", "f"].map(|name| format!("{name}.example.com")));
    let undescribed = json!({"type": "object", "properties": {"a": {"type": "number"}}});
    let both = [
        ("description", in_both(json!({"description": ""}))),
        ("template-text", in_both(json!({"description": "Describe here what this tool does."}))),
        ("input-schema", schema("input_schema", json!({"type": "array"}))),
        ("output-schema", (json!({"output_schema": true}), json!({"definition": {}}))),
        ("schema-invalid", schema("output_schema", json!({"type": 7}))),
        ("required-property", schema("output_schema", json!({"type": "object", "properties": {}, "required": ["a"]}))),
        ("property-described", schema("output_schema", undescribed)),
        ("example-required", (json!({"examples": []}), json!({"definition": {"examples": []}}))),
        (
            "example-conforms",
            (
                json!({"examples": [{"description": "One", "input": {}}]}),
                json!({"definition": {"inputSchema": {"required": ["a"]}, "examples": [{"description": "One", "input": {}}]}}),
            ),
        ),
        (
            "example-form",
            (
                json!({"examples": [{"input": {"a": 1, "b": 2}, "output": {"sum": 3}, "error": {"code": "Timeout"}}]}),
                json!({"definition": {"examples": [{"output": 3, "error": {"code": "Timeout"}}]}}),
            ),
        ),
        (
            "example-matcher",
            (
                json!({"examples": [{"input": {"a": 1, "b": 2}, "output": {"sum": {"$type": "text"}}}]}),
                json!({"definition": {"examples": [{"output": {"$regex": "("}}]}}),
            ),
        ),
        ("net-host", in_both(json!({"permissions": {"net": ["localhost"]}}))),
        ("net-too-many", in_both(json!({"permissions": {"net": hosts}}))),
        ("net-open", in_both(json!({"permissions": {"net": true}}))),
        ("tools-permission", in_both(json!({"permissions": {"tools": ["*"]}}))),
        ("forbidden-permission", in_both(json!({"permissions": {"run": true}}))),
        ("env-permission", in_both(json!({"permissions": {"env": ["HOME"]}}))),
        ("limits", in_both(json!({"limits": {"memory_mb": 1}}))),
        ("unknown-field", (json!({"colour": "red"}), json!({"permissions": {"colour": "red"}}))),
        ("misspelled-field", (json!({"desc": "Adds."}), json!({"permissions": {"nets": false}}))),
        ("secret-name", in_both(json!({"required_secrets": ["no name"]}))),
        ("builtin-name", (none.clone(), json!({"implementation": {"type": "builtin", "tool": "other"}}))),
        (
            "builtin-isolation",
            (none.clone(), json!({"implementation": {"type": "builtin", "tool": "adder", "isolation": "moon"}})),
        ),
        ("deprecated", in_both(json!({"deprecated": {"since": "2026-01-31", "use": "adder"}}))),
        ("bootstrap", (json!({"bootstrap": {"enabled": true, "wait_for": ["adder"]}}), none.clone())),
    ];
    let code_alone = [
        ("syntax", code("export async function (")),
        ("execute-exported", code("export const a = 1;")),
        ("execute-async", code("export function execute() {}")),
        ("no-eval", execute("return eval('1');")),
        ("no-function-constructor", execute("return new Function('1');")),
        ("no-string-timer", execute("setTimeout('1', 1);")),
        ("no-import", code("import a from 'a'; export async function execute() { return a; }")),
        ("no-dynamic-import", execute("await import('a');")),
        ("no-require", execute("require('a');")),
        ("no-import-meta", execute("return import.meta.url;")),
    ];
    let both = both.into_iter().map(|(rule, (code, legacy))| (rule, code, legacy));
    both.chain(code_alone.map(|(rule, code)| (rule, code, Value::Null))).collect()
}

/// A `tool.v1` with these changes.
fn legacy(changes: &Value) -> Result<ToolDefinition, Violations> {
    let mut context = json!({
        "name": "adder", "description": "Adds two numbers.", "version": "1.0.0",
        "implementation": {"type": "http", "url": "https://api.example.com/"}
    });
    context.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    ToolDefinition::read("tool.v1", context.as_object().unwrap(), None, None)
}

/// `error` or `warning`, or `not` if the rule finds nothing.
fn outcome(rule: &str, definition: &Result<ToolDefinition, Violations>, author: Author) -> &'static str {
    let report = match definition {
        Ok(definition) => tool_as(definition, author),
        // Limits are checked when a definition is read.
        Err(violations) => {
            assert!(violations.0.iter().all(|one| one.field.starts_with(rule)), "{rule}: {violations:?}");
            return "error";
        }
    };
    let (is_error, is_warning) =
        (report.errors.iter().any(|one| one.rule == rule), report.warnings.iter().any(|one| one.rule == rule));
    assert!(!(is_error && is_warning), "{rule} gives both");
    if is_error {
        "error"
    } else if is_warning {
        "warning"
    } else {
        "not"
    }
}

#[test]
fn the_page_says_which_findings_are_errors_and_for_whom() {
    let listed = listed();
    let broken = broken();
    let tried: BTreeSet<String> = broken.iter().map(|(rule, ..)| (*rule).to_owned()).collect();
    assert_eq!(tried, listed.keys().cloned().collect(), "each rule of the table has a case here");
    for (rule, code, old) in broken {
        let says = &listed[rule];
        let usual = says.split(';').next().unwrap();
        let is_said = |who: &str, found: &str, otherwise: &str| {
            let differs = found != otherwise;
            let is_right = if differs { says.contains(&format!("{found} for {who}")) } else { !says.contains(who) };
            assert!(is_right, "{rule}: {found} for {who}, {otherwise} otherwise; the page says {says:?}");
        };
        if !code.is_null() {
            let tool = read(code.clone());
            assert_eq!(outcome(rule, &tool, Author::User), usual, "{rule}");
            is_said("the operator's own tools", outcome(rule, &tool, Author::System), usual);
        }
        if !old.is_null() {
            let found = outcome(rule, &legacy(&old), Author::User);
            if code.is_null() {
                assert_eq!(found, usual, "{rule}");
            } else {
                is_said("`tool.v1`", found, usual);
                let mut builtin = old;
                builtin["implementation"] = json!({"type": "builtin", "tool": "adder"});
                is_said("builtin tools", outcome(rule, &legacy(&builtin), Author::User), found);
            }
        }
    }
    let too_long = read(json!({"limits": {"timeout_ms": 86_400_000_u64}}));
    let found = outcome("limits", &too_long, Author::User);
    assert!(listed["limits"].contains(&format!("{found} for a `timeout_ms` beyond 900,000")), "{}", listed["limits"]);
}
