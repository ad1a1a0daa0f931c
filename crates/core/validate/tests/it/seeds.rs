//! Every file in `bootstrap-breadcrumbs/` loads and has no findings.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use rcrt_breadcrumb::{
    ErrorCode, LogLine, RequestKind, ShadowReport, ToolFailure, ToolLog, ToolRequest, ToolResponse, ToolSource,
};
use rcrt_validate::guide::Guide;
use rcrt_validate::seed::{self, Seed};
use rcrt_validate::template::{TOOL_TEMPLATE, Template};
use rcrt_validate::{Author, Finding, Schema, tool_as};
use serde_json::{Map, Value, json};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../bootstrap-breadcrumbs")
}

const FOLDERS: &[&str] = &["schemas", "tools-self-contained", "tools", "tools-native", "guides", "templates", "system"];

/// The builtin tools, by family.
const NATIVE: &[(&str, &[&str])] = &[
    ("tool-authoring", &["create_tool", "update_tool", "test_tool", "describe_tool", "list_my_tools", "retire_tool"]),
    ("discovery", &["find_tools", "search_known_services"]),
    ("files", &["append_file", "read_file", "write_file"]),
    (
        "agents",
        &[
            "get_agent_details",
            "invoke_agent",
            "list_known_agents",
            "refresh_agent_card",
            "register_agent",
            "unregister_agent",
        ],
    ),
    ("processes", &["bash", "execute_python_script"]),
    ("web-tools", &["web_browse", "web_fetch", "web_search"]),
    ("schedule", &["cancel_scheduled_task", "list_scheduled_tasks", "schedule_task"]),
    (
        "mcp-tool-guide",
        &[
            "mcp_find_tools",
            "mcp_get_prompt",
            "mcp_get_service_details",
            "mcp_invoke_tool",
            "mcp_list_resources",
            "mcp_list_services",
            "mcp_read_resource",
            "mcp_register_server",
            "mcp_unregister_server",
        ],
    ),
    (
        "memory",
        &[
            "delete_from_working_memory",
            "get_from_working_memory",
            "list_working_memory",
            "save_to_working_memory",
            "search_working_memory",
            "result_jsonpath",
            "result_search",
            "result_slice",
            "get_tool_guide",
            "list_tool_guides",
            "delete_skill",
            "get_skill",
            "list_skills",
            "save_skill",
        ],
    ),
];

pub fn seeds() -> Vec<Seed> {
    let mut found = Vec::new();
    for folder in FOLDERS {
        for entry in fs::read_dir(root().join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "json") {
                let source = fs::read_to_string(path.with_extension("ts")).ok();
                let shown = format!("{folder}/{}", path.file_name().unwrap().to_string_lossy());
                let json = fs::read_to_string(&path).unwrap();
                found.push(seed::read(&shown, &json, source.as_deref()).unwrap_or_else(|error| panic!("{error}")));
            }
        }
    }
    found
}

/// The shipped JSON Schemas by the schema name that they define.
fn shipped_schemas() -> BTreeMap<String, Schema> {
    seeds()
        .into_iter()
        .filter(|seed| seed.record.schema_name.as_deref() == Some("schema.def.v1"))
        .map(|seed| {
            let schema =
                Schema::compile(&seed.record.context["schema"]).unwrap_or_else(|e| panic!("{}: {e}", seed.path));
            (seed.record.context["schema_name"].as_str().unwrap().to_owned(), schema)
        })
        .collect()
}

#[test]
fn all_required_seeds_exist() {
    let mut tools: Vec<String> = seeds().into_iter().filter_map(|seed| Some(seed.tool?.name)).collect();
    tools.sort();
    let mut promised = vec![
        "breadcrumb-create",
        "breadcrumb-search",
        "browser-context-capture",
        "calculator",
        "context-builder",
        "echo",
        "json-transform",
        "ollama",
        "openrouter",
        "openrouter-models-sync",
        "public-holidays",
        "random",
        "timer",
        "venice",
        "workflow",
    ];
    promised.extend(NATIVE.iter().flat_map(|(_, tools)| *tools));
    promised.sort_unstable();
    assert_eq!(tools, promised);
    let names: Vec<String> = shipped_schemas().into_keys().collect();
    assert_eq!(
        names,
        [
            "a2a.agent.v1",
            "a2a.card.v1",
            "a2a.task.v1",
            "mcp.change.v1",
            "mcp.server.v1",
            "mcp.status.v1",
            "memory.entry.v1",
            "schedule.fired.v1",
            "schedule.v1",
            "tool.catalog.v1",
            "tool.code.v1",
            "tool.create.request.v1",
            "tool.create.response.v1",
            "tool.error.v1",
            "tool.guide.v1",
            "tool.log.v1",
            "tool.progress.v1",
            "tool.request.v1",
            "tool.response.v1",
            "tool.runner.v1",
            "tool.shadow.v1",
            TOOL_TEMPLATE,
            "tool.v1"
        ]
    );
}

#[test]
fn every_folder_is_read() {
    let mut there: Vec<String> = fs::read_dir(root())
        .unwrap()
        .filter_map(|entry| Some(entry.unwrap()).filter(|entry| entry.path().is_dir()))
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    there.sort();
    let mut known: Vec<&str> = FOLDERS.to_vec();
    known.sort_unstable();
    assert_eq!(there, known);
}

/// Also those that `rcrt tool new` creates. A hint that is not set counts as destructive and
/// open-world.
#[test]
fn all_shipped_tools_declare_their_effects() {
    let mut by_name = BTreeMap::new();
    for seed in seeds() {
        let is_template = seed.path.starts_with("templates/");
        if !is_template && seed.tool.is_none() {
            continue;
        }
        let record = Value::Object(seed.record.context);
        let context = if is_template { &record["record"]["context"] } else { &record };
        let hint = |name: &str| {
            let hint = context.pointer(&format!("/annotations/{name}")).and_then(Value::as_bool);
            hint.unwrap_or_else(|| panic!("{} does not set annotations.{name}", seed.path))
        };
        let hints = ["read_only", "destructive", "idempotent", "open_world"].map(hint);
        assert!(!(hints[0] && hints[1]), "{} cannot be read-only and destructive", seed.path);
        by_name.insert(context["name"].as_str().unwrap_or_default().to_owned(), hints);
    }
    assert_eq!(by_name["calculator"], [true, false, true, false]);
    assert_eq!(by_name["public-holidays"], [true, false, true, true]);
    assert!(by_name.len() > 30, "{by_name:?}");
}

#[test]
fn native_tools_have_limits_examples_and_a_workspace() {
    for seed in seeds() {
        let Some(name) = seed.path.strip_prefix("tools-native/") else { continue };
        let tool = seed.tool.unwrap_or_else(|| panic!("{} is not a tool", seed.path));
        assert_eq!(name, format!("{}.json", tool.name), "a file is named after its tool");
        assert_eq!(tool.implementation.source(), ToolSource::Native, "{name}");
        assert!(seed.record.context.contains_key("limits"), "{name} has no limits");
        // Reports the fields of a tool outside of tool_spec itself, all in one sentence.
        if tool.name != "create_tool" {
            assert_eq!(tool.input_schema["additionalProperties"], json!(false), "{name}");
        }
        assert!(!tool.examples.is_empty(), "{name} has no example");
        assert!(seed.record.tags.iter().any(|tag| tag == "workspace:tools"), "{name}");
    }
}

#[test]
fn every_native_tool_has_a_guide_and_guides_name_existing_tools() {
    let (mut about, mut names) = (BTreeMap::new(), Vec::new());
    let tools: Vec<String> = seeds().into_iter().filter_map(|seed| Some(seed.tool?.name)).collect();
    for seed in seeds().into_iter().filter(|seed| seed.path.starts_with("guides/")) {
        let guide: Guide = serde_json::from_value(Value::Object(seed.record.context)).unwrap();
        assert_eq!(seed.path, format!("guides/{}.json", guide.name));
        assert!(seed.record.tags.iter().any(|tag| tag == "workspace:tools"), "{}", seed.path);
        for tool in guide.tools {
            assert!(tools.contains(&tool), "{} names {tool}, which does not exist", seed.path);
            assert!(guide.content.contains(&tool), "{} names {tool} and says nothing of it", seed.path);
            about.insert(tool, guide.name.clone());
        }
        names.push(guide.name);
    }
    for (family, tools) in NATIVE {
        assert!(names.iter().any(|name| name == family), "there is no guide for {family}");
        for tool in *tools {
            assert!(about.contains_key(*tool), "no guide names {tool}");
        }
    }
}

#[test]
fn a_number_beyond_64_bits_is_reported_by_field() {
    let json = r#"{"title": "t", "schema_name": "note.v1", "context": {"n": [123456789012345678901234567890]}}"#;
    let violations = seed::read("n.json", json, None).unwrap_err().violations;
    assert_eq!(violations.0[0].field, "context.n[0]");
}

#[test]
fn a_broken_guide_is_reported_by_field() {
    let read = |context: Value, tags: Value| {
        let record = json!({ "schema_name": "tool.guide.v1", "title": "T", "tags": tags, "context": context });
        seed::read("g.json", &record.to_string(), None)
    };
    let good = json!({ "name": "x", "title": "X", "summary": "S.", "tools": ["echo"], "content": "Call `echo`." });
    let tags = json!(["tool:guide", "guide:x"]);
    assert!(read(good.clone(), tags.clone()).is_ok());
    let untagged = read(good.clone(), json!(["tool:guide"])).unwrap_err().to_string();
    assert!(untagged.contains("tags") && untagged.contains("guide:x"), "{untagged}");
    for (field, value, says) in [
        ("content", json!(" "), "context.content"),
        ("content", json!("x".repeat(200_001)), "context.content"),
        ("summary", json!("x".repeat(501)), "context.summary"),
        ("tools", json!(vec!["a"; 101]), "context.tools"),
        ("tools", json!("echo"), "context.tools: must be an array, not a string"),
        ("colour", json!("red"), "context.colour: is not a known field"),
    ] {
        let mut context = good.clone();
        context[field] = value;
        let error = read(context, tags.clone()).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
}

#[test]
fn a_wrong_type_is_reported_by_field() {
    let refused = |record: Value| seed::read("n.json", &record.to_string(), None).unwrap_err().to_string();
    let record = json!({ "schema_name": "tool.guide.v1", "title": "T", "context": { "name": "x", "title": "X" } });
    assert_eq!(refused(record), "n.json: context.summary: is required");
    let record = json!({ "schema_name": "note.v1", "title": "T", "tags": ["a", 5] });
    assert_eq!(refused(record), "n.json: tags[1]: must be a string, not a number");
    let record = json!({ "schema_name": "note.v1", "title": "T", "visibility": "secret" });
    let refused = refused(record);
    assert!(refused.starts_with("n.json: visibility: must be one of "), "{refused}");
}

#[test]
fn every_source_belongs_to_a_record() {
    for folder in ["tools-self-contained", "templates"] {
        for entry in fs::read_dir(root().join(folder)).unwrap() {
            let path = entry.unwrap().path();
            assert!(path.with_extension("json").exists(), "{}", path.display());
        }
    }
}

#[test]
fn shipped_tools_have_neither_errors_nor_warnings() {
    for seed in seeds() {
        let Some(tool) = seed.tool else { continue };
        for author in [Author::System, Author::User] {
            let report = tool_as(&tool, author);
            // It waits until the operator allows its host.
            let private = |finding: &&Finding| tool.name == "ollama" && finding.rule == "net-host";
            let errors: Vec<&Finding> = report.errors.iter().filter(|finding| !private(finding)).collect();
            assert_eq!((errors, report.warnings), (vec![], vec![]), "{}", seed.path);
        }
        assert!(seed.record.tags.contains(&format!("tool:{}", tool.name)), "{}", seed.path);
    }
}

/// Tools have no imports, so these contain the same code.
#[test]
fn the_tools_for_models_share_their_client() {
    let source = |name: &str| {
        let path = root().join("tools-self-contained").join(name).with_extension("ts");
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    let after = |name: &str, heading: &str| {
        let source = source(name);
        let at = source.find(heading).unwrap_or_else(|| panic!("{name} has no {heading:?}"));
        source[at..].to_owned()
    };
    assert_eq!(after("openrouter", "// --- Chat completions"), after("venice", "// --- Chat completions"));
    assert_eq!(after("openrouter", "// --- Answers and requests"), after("ollama", "// --- Answers and requests"));
}

#[test]
fn every_record_conforms_to_the_shipped_schema_of_its_kind() {
    let schemas = shipped_schemas();
    for seed in seeds() {
        if let Some(schema) = schemas.get(seed.record.schema_name.as_deref().unwrap()) {
            let found = schema.check_as("context", &Value::Object(seed.record.context));
            assert_eq!(found, [], "{}", seed.path);
        }
    }
}

#[test]
fn the_records_of_the_runtime_conform_to_the_shipped_schemas() {
    let schemas = shipped_schemas();
    let check = |name: &str, context: Map<String, Value>| {
        assert_eq!(schemas[name].check_as("context", &Value::Object(context)), [], "{name}");
    };
    let request = ToolRequest::record("echo", json!({ "message": 1 }), Some("r1"), Some("workspace:tools"));
    check("tool.request.v1", request.context);
    let request = ToolRequest {
        id: uuid::Uuid::nil(),
        request_id: "r1".into(),
        tool: "echo".into(),
        input: json!({}),
        ..ToolRequest::default()
    };
    let mut results = vec![Ok(json!({ "echo": 1 })), Ok(Value::Null)];
    results.extend(ErrorCode::ALL.map(|code| Err(ToolFailure::new(code, "why").with_details(json!([1])))));
    for result in results {
        let response = ToolResponse::new(&request, result, 3, Map::new(), chrono::DateTime::UNIX_EPOCH);
        check("tool.response.v1", response.clone().record(&request).context);
        let creation = ToolRequest { kind: RequestKind::Creation, ..request.clone() };
        let is_failure = response.error_code.is_some();
        let record = response.record(&creation);
        assert_eq!(record.schema_name.as_deref(), Some("tool.create.response.v1"));
        if is_failure {
            assert_eq!(record.context["status"], "rejected");
            check("tool.create.response.v1", record.context);
        }
    }
    let line = LogLine { level: "info".into(), message: "here".into(), at_ms: 7 };
    check("tool.log.v1", ToolLog { attempt: 1, lines: vec![line], ..ToolLog::default() }.into_context());
    let found = json!({"request": uuid::Uuid::nil(), "path": "$", "message": "why", "legacy": 1, "code": null});
    let report = ShadowReport { author: Some(uuid::Uuid::nil()), differences: vec![found], ..ShadowReport::default() };
    for report in [report, ShadowReport::default()] {
        let Value::Object(context) = json!(report) else { unreachable!() };
        check("tool.shadow.v1", context);
    }
    assert!(
        !schemas["tool.response.v1"]
            .check(&json!({ "request_id": "r", "tool": "t", "status": "error",
        "execution_time_ms": 1, "timestamp": "2026-01-01T00:00:00Z" }))
            .is_empty()
    );
}

#[test]
fn every_template_becomes_a_valid_tool_without_edits() {
    let mut names = Vec::new();
    for seed in seeds() {
        if seed.record.schema_name.as_deref() != Some(TOOL_TEMPLATE) {
            continue;
        }
        let template = Template::from_context(&seed.record.context).unwrap_or_else(|e| panic!("{}: {e}", seed.path));
        names.push(template.name.clone());
        for description in [None, Some(r#"Says "hi" \ it's `${fine}` */ // {{name}} <!--"#)] {
            let mut values = BTreeMap::from([("name".to_owned(), "my-tool".to_owned())]);
            values.extend(description.map(|text| ("description".to_owned(), text.to_owned())));
            let new = template.instantiate(&values).unwrap();
            let made = seed::read("my-tool.json", &new.json, Some(&new.source)).unwrap_or_else(|e| panic!("{e}"));
            let tool = made.tool.unwrap();
            assert_eq!(tool.name, "my-tool");
            if let Some(description) = description {
                assert_eq!(tool.description, description);
            }
            let report = rcrt_validate::tool(&tool);
            let warned: Vec<&str> = report.warnings.iter().map(|warning| warning.rule).collect();
            let expected: &[&str] = if description.is_some() { &[] } else { &["template-text"] };
            assert_eq!((report.errors, warned.as_slice()), (vec![], expected), "{}", seed.path);
            let whole = format!("{}{}", new.json, new.source).replace("{{name}} <!--", "");
            assert!(!whole.contains("{{"), "{whole}");
        }
    }
    names.sort();
    assert_eq!(names, ["async-event", "data", "http-api", "transform"]);
}

#[test]
fn a_broken_file_is_reported_by_file_and_field() {
    let tool = json!({ "schema_name": "tool.code.v1", "title": "T", "context": { "name": "1 bad", "code": { "language": "cobol" } } });
    let fails = |json: &str, source: Option<&str>| seed::read("tools/x.json", json, source).unwrap_err().to_string();
    assert_eq!(fails("{", None), "tools/x.json: is not valid JSON: EOF while parsing an object at line 1 column 1");
    assert!(fails("[]", None).contains("must be a JSON object"));
    assert!(fails(r#"{"title": "x", "colour": 1}"#, None).contains("colour"));
    let message = fails(&tool.to_string(), None);
    assert!(message.contains("context.name:") && message.contains("context.code.language:"), "{message}");
    let both = json!({ "schema_name": "tool.code.v1", "title": "T", "context": { "code": { "source": "" } } });
    assert!(fails(&both.to_string(), Some("x")).starts_with("tools/x.json: context.code.source: is set"));
    assert!(fails(r#"{"title": "", "context": {}}"#, None).contains("title"));
}

#[test]
fn a_separate_source_file_gives_the_same_record_as_inline_source() {
    let with =
        |code: Value| json!({ "schema_name": "tool.code.v1", "title": "T", "context": { "name": "t", "code": code } });
    let inside = with(json!({ "language": "typescript", "source": "export {}" })).to_string();
    for beside in [with(json!({})), with(json!({ "language": "typescript" }))] {
        let beside = seed::read("t.json", &beside.to_string(), Some("export {}")).unwrap();
        assert_eq!(beside, seed::read("t.json", &inside, None).unwrap());
    }
}

/// Searches that leave out the runtime's records must not find what the installation writes.
#[test]
fn every_seed_is_a_record_of_the_runtime() {
    for seed in seeds() {
        let schema = seed.record.schema_name.as_deref().unwrap();
        assert!(rcrt_breadcrumb::schema_names::is_of_runtime(schema), "{}: {schema}", seed.path);
    }
}
