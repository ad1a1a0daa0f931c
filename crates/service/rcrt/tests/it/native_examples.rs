//! The examples of the included native tools, run by a real runner. An output that an example
//! states is compared exactly; the runner checks every output against the tool's schema.

use std::collections::BTreeSet;
use std::io::{Cursor, Write};
use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::program::Running;

/// Tools that need the internet, another agent or an MCP server. Their examples are only checked
/// against their schemas, by the tests of the crate `validate`.
const NETWORK: [&str; 15] = [
    "get_agent_details",
    "invoke_agent",
    "mcp_get_prompt",
    "mcp_get_service_details",
    "mcp_invoke_tool",
    "mcp_list_resources",
    "mcp_read_resource",
    "mcp_register_server",
    "mcp_unregister_server",
    "refresh_agent_card",
    "register_agent",
    "unregister_agent",
    "web_browse",
    "web_fetch",
    "web_search",
];
/// All others, in an order in which each example finds what an earlier one wrote.
const ORDER: [&str; 33] = [
    "list_known_agents",
    "write_file",
    "append_file",
    "read_file",
    "bash",
    "execute_python_script",
    "delete_skill",
    "save_skill",
    "get_skill",
    "list_skills",
    "list_tool_guides",
    "get_tool_guide",
    "save_to_working_memory",
    "get_from_working_memory",
    "list_working_memory",
    "search_working_memory",
    "delete_from_working_memory",
    "schedule_task",
    "list_scheduled_tasks",
    "cancel_scheduled_task",
    "result_search",
    "result_slice",
    "result_jsonpath",
    "create_tool",
    "update_tool",
    "test_tool",
    "describe_tool",
    "list_my_tools",
    "retire_tool",
    "find_tools",
    "search_known_services",
    "mcp_list_services",
    "mcp_find_tools",
];
/// How the keys of large results begin in the examples. The rest of a real key depends on the
/// request's id.
const EXAMPLE_KEY: &str = "session/s1/tool-";

#[test]
fn included_native_tools_return_what_their_examples_say() {
    let shipped = tools();
    let names: BTreeSet<&str> = shipped.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ORDER.into_iter().chain(NETWORK).collect());

    let folder = TempDir::new().unwrap();
    let work = folder.path().join("work");
    files(&work);
    let workdir = work.to_str().unwrap();
    let arguments = ["up", "--listen", "127.0.0.1:0", "--enable-tool", "bash", "--workdir", workdir];
    let up = Running::start(&folder.path().join("data"), &arguments);
    let key = large_result(&up, &work);
    let offered = up.json(&["tool", "list"]);
    let waits = |tool: &str| {
        let row = offered.as_array().unwrap().iter().find(|row| row["name"] == tool);
        row.unwrap_or_else(|| panic!("{tool} is not listed")).get("missing_requirements").is_some()
    };
    for tool in ORDER {
        if waits(tool) {
            assert!(["bash", "execute_python_script"].contains(&tool), "{tool} cannot run");
            assert!(std::env::var_os("RCRT_TEST_NEEDS_JAIL").is_none(), "{tool} cannot run");
            continue;
        }
        let (_, examples) = shipped.iter().find(|(name, _)| name == tool).unwrap();
        // Packages come from the internet.
        let runnable: Vec<&Value> =
            examples.iter().filter(|example| example["input"].get("pip_packages").is_none()).collect();
        assert!(!runnable.is_empty(), "{tool} has no example");
        for example in runnable {
            let response = call(&up, tool, &with_real_key(&example["input"], &key));
            assert_eq!(response["status"], "success", "{tool} {example}: {response}");
            if let Some(output) = example.get("output") {
                assert_eq!(response["output"], *output, "{tool} {example}");
            }
        }
    }
    let (status, stderr) = up.stop();
    assert_eq!(status.code(), Some(0), "{stderr}");
}

/// The names and examples of the included native tools.
fn tools() -> Vec<(String, Vec<Value>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../bootstrap-breadcrumbs/tools-native");
    let read = |path: &Path| {
        let record: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let context = &record["context"];
        let examples = context["definition"]["examples"].as_array().unwrap().clone();
        (context["name"].as_str().unwrap().to_owned(), examples)
    };
    std::fs::read_dir(folder).unwrap().map(|entry| read(&entry.unwrap().path())).collect()
}

fn call(up: &Running, tool: &str, input: &Value) -> Value {
    let ran = up.run(&["call", tool, &input.to_string(), "--session", "s1", "-o", "json"]);
    ran.json()
}

/// What the examples of the file tools expect.
fn files(work: &Path) {
    for folder in ["notes", "logs", "letters"] {
        std::fs::create_dir_all(work.join(folder)).unwrap();
    }
    // 32 bytes, to which `append_file` adds 16.
    std::fs::write(work.join("notes/log.txt"), "2026-02-28 begun\n2026-02-28 end\n").unwrap();
    let lines: Vec<String> = (1..=300).map(|line| format!("line {line}\n")).collect();
    let lines = lines.concat();
    std::fs::write(work.join("logs/server.log"), lines).unwrap();
    std::fs::write(work.join("letters/offer.docx"), word_document("An offer")).unwrap();
}

fn word_document(text: &str) -> Vec<u8> {
    let word = "http://schemas.openxmlformats.org/wordprocessingml/2006/main";
    let document = format!(
        r#"<w:document xmlns:w="{word}"><w:body><w:p><w:r><w:t>{text}</w:t></w:r></w:p></w:body></w:document>"#
    );
    let relations = r#"<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="rId1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" Target="word/document.xml"/></Relationships>"#;
    let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, part) in
        [("[Content_Types].xml", "<Types/>"), ("_rels/.rels", relations), ("word/document.xml", &document)]
    {
        archive.start_file(name, zip::write::SimpleFileOptions::default()).unwrap();
        archive.write_all(part.as_bytes()).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

/// The key of a large JSON result in the session.
fn large_result(up: &Running, work: &Path) -> String {
    let item = |n: u32| json!({"name": format!("rust-{n}"), "stars": n, "about": "price per month ".repeat(20)});
    let document = json!({"items": (0..400).map(item).collect::<Vec<_>>()}).to_string();
    std::fs::write(work.join("items.json"), document).unwrap();
    let response = call(up, "read_file", &json!({"path": "items.json", "max_chars": 400_000}));
    let key = response["metadata"]["large_result"]["key"].as_str();
    key.unwrap_or_else(|| panic!("{response}")).to_owned()
}

fn with_real_key(input: &Value, key: &str) -> Value {
    let mut input = input.clone();
    if let Some(Value::String(named)) = input.get_mut("key")
        && named.starts_with(EXAMPLE_KEY)
    {
        let part = named.find("-chunk").map_or("", |at| &named[at..]);
        *named = format!("{key}{part}");
    }
    input
}
