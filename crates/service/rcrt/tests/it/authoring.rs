//! Writing a tool: running its file, testing and publishing it at each change.

use std::io::{BufRead, BufReader, Lines};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::program::{Ran, Running, rcrt, run};

fn record(name: &str, output: &Value, more: &Value) -> Value {
    let mut context = json!({
        "name": name,
        "description": "Returns a number.",
        "version": "1.0.0",
        "input_schema": {"type": "object", "properties": {"n": {"type": "integer"}}, "additionalProperties": false},
        "output_schema": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
        "permissions": {"net": false},
        "examples": [{"description": "Two", "input": {"n": 2}, "output": output}],
    });
    context.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"schema_name": "tool.code.v1", "title": name, "tags": ["tool"], "context": context})
}

/// Writes a tool and returns the path of its source.
pub fn tool(folder: &Path, name: &str, output: &Value, more: &Value, body: &str) -> PathBuf {
    std::fs::create_dir_all(folder).unwrap();
    std::fs::write(folder.join(format!("{name}.json")), record(name, output, more).to_string()).unwrap();
    let source = folder.join(format!("{name}.ts"));
    write(&source, body);
    source
}

pub fn write(source: &Path, body: &str) {
    let text = format!("export async function execute(input: {{ n?: number }}, context: any) {{\n{body}\n}}\n");
    std::fs::write(source, text).unwrap();
}

fn double(folder: &Path, more: &Value) -> PathBuf {
    tool(folder, "double", &json!({"n": 4}), more, "return { n: 2 * (input.n ?? 0) };")
}

pub fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// `tool run`, with JSON as output.
fn ran(file: &Path, more: &[&str], status: i32) -> Value {
    run(&[&["tool", "run", text(file), "--output", "json"], more].concat()).ends_with(status).json()
}

#[test]
fn a_file_runs_without_a_server() {
    let folder = TempDir::new().unwrap();
    let source = double(folder.path(), &json!({}));
    let shown = run(&["tool", "run", text(&source), "--input", r#"{"n": 21}"#]).ends_with(0);
    assert_eq!(shown.stdout, "{\n  \"n\": 42\n}\n");
    let input = folder.path().join("input.json");
    std::fs::write(&input, r#"{"n": 4}"#).unwrap();
    let from_file = format!("@{}", text(&input));
    assert_eq!(ran(&source.with_extension("json"), &["--input", &from_file], 0)["output"], json!({"n": 8}));

    // A failure has the code of a call.
    let refused = ran(&source, &["--input", r#"{"m": 1}"#], 4);
    assert_eq!(refused["error"]["code"], "InvalidArguments", "{refused}");
    assert!(refused["error"]["message"].as_str().unwrap().contains("input_schema"), "{refused}");
    write(&source, "console.log('half'); return { n: 0.5 };");
    let refused = ran(&source, &[], 4);
    assert_eq!(refused["error"]["code"], "InvalidOutput", "{refused}");
    assert_eq!(refused["console"][0]["message"], "half", "{refused}");
    write(&source, "throw new Error(`no ${input.n}`);");
    let failed = run(&["tool", "run", text(&source), "--input", r#"{"n": 3}"#]).ends_with(4);
    assert!(failed.stderr.contains("double: ExecutionFailed: ") && failed.stderr.contains("no 3"), "{}", failed.stderr);
    write(&source, "return { n: eval('1') };");
    let invalid = run(&["tool", "run", text(&source)]).ends_with(1);
    assert!(invalid.stderr.contains("double.ts:2:"), "{}", invalid.stderr);

    for (arguments, says) in [
        (vec![text(folder.path())], "is a folder"),
        (vec![text(&source), "--input", "{"], "--input is not valid JSON"),
        (vec![text(&source), "--input", "-", "--watch"], "--input @FILE"),
    ] {
        write(&source, "return { n: 1 };");
        let wrong = run(&[&["tool", "run"], &arguments[..]].concat()).ends_with(2);
        assert!(wrong.stderr.contains(says), "{}", wrong.stderr);
    }
}

#[test]
fn a_run_reaches_only_the_permitted_network_and_keeps_secrets() {
    let folder = TempDir::new().unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        let mut connection = BufReader::new(listener.accept().unwrap().0);
        let mut request = String::new();
        while !request.ends_with("\r\n\r\n") && connection.read_line(&mut request).unwrap() > 0 {}
        let body = "{\"n\": 7}";
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len());
        std::io::Write::write_all(connection.get_mut(), head.as_bytes()).unwrap();
        request
    });
    let body = format!(
        "const headers = {{ authorization: context.secrets.KEY }};\n\
         console.log(context.secrets.KEY);\n\
         return await (await fetch('http://{address}/n', {{ headers }})).json();"
    );
    let more = json!({"permissions": {"net": [address.to_string()]}, "required_secrets": ["KEY"]});
    let source = tool(folder.path(), "asks", &json!({"n": 7}), &more, &body);
    let allowed = format!("asks={address}");
    let secrets = folder.path().join("values");
    std::fs::write(&secrets, r#"{"KEY": "a-real-secret"}"#).unwrap();

    // The validators refuse a private host that the operator does not allow.
    run(&["tool", "run", text(&source)]).ends_with(1);
    let output = ran(&source, &["--allow-private-host", &allowed, "--secrets", text(&secrets)], 0);
    assert_eq!(output["output"], json!({"n": 7}), "{output}");
    assert!(!output.to_string().contains("a-real-secret"), "{output}");
    let request = server.join().unwrap().to_lowercase();
    assert!(request.contains("authorization: a-real-secret\r\n"), "{request}");

    std::fs::write(&secrets, r#"{"OTHER": "x"}"#).unwrap();
    let more = ["--allow-private-host", &allowed, "--secrets", text(&secrets)];
    let wrong = run(&[&["tool", "run", text(&source)], &more[..]].concat()).ends_with(2);
    assert!(wrong.stderr.contains("\"OTHER\" is not among the required_secrets of asks"), "{}", wrong.stderr);
}

#[test]
fn a_run_writes_nothing() {
    let folder = TempDir::new().unwrap();
    let body = "const { id } = await context.api.createBreadcrumb({ title: 'New', context: { n: 1 } });\n\
                const found = await context.api.searchBreadcrumbs({});\n\
                return { n: found.filter((one: any) => one.id === id).length };";
    let source = tool(folder.path(), "writes", &json!({"n": 1}), &json!({}), body);
    let output = ran(&source, &[], 0);
    assert_eq!(output["output"], json!({"n": 1}), "{output}");
    assert_eq!(output["writes"][0]["create"]["title"], "New", "{output}");
}

/// A command that keeps running. It is killed if the test fails.
struct Watching {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Watching {
    fn start(mut command: Command) -> Self {
        let mut child = command.args(["--output", "json"]).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    /// The next line, which is JSON.
    fn next(&mut self) -> Value {
        serde_json::from_str(&self.lines.next().unwrap().unwrap()).unwrap()
    }

    /// The next value on several lines.
    fn next_indented(&mut self) -> Value {
        let mut text = String::new();
        loop {
            text += &self.lines.next().unwrap().unwrap();
            if let Ok(value) = serde_json::from_str(&text) {
                return value;
            }
        }
    }

    fn ends_by(mut self, signal: Signal) -> i32 {
        kill(Pid::from_raw(self.child.id() as i32), signal).unwrap();
        self.child.wait().unwrap().code().unwrap()
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn statuses(line: &Value) -> Vec<&str> {
    line["examples"].as_array().unwrap().iter().map(|example| example["status"].as_str().unwrap()).collect()
}

#[test]
fn a_watched_run_follows_the_tool_and_its_input() {
    let folder = TempDir::new().unwrap();
    let source = double(folder.path(), &json!({}));
    let input = folder.path().join("input");
    std::fs::write(&input, r#"{"n": 1}"#).unwrap();
    let mut command = rcrt();
    command.args(["tool", "run", text(&source), "--watch", "--input", &format!("@{}", text(&input))]);
    let mut watching = Watching::start(command);
    assert_eq!(watching.next_indented()["output"]["n"], 2);
    std::fs::write(&input, r#"{"n": 10}"#).unwrap();
    assert_eq!(watching.next_indented()["output"]["n"], 20);
    write(&source, "throw new Error('not now');");
    assert_eq!(watching.next_indented()["error"]["code"], "ExecutionFailed");
    write(&source, "return { n: 3 };");
    assert_eq!(watching.next_indented()["output"]["n"], 3);
    assert_eq!(watching.ends_by(Signal::SIGINT), 130);
}

#[test]
fn watched_tools_are_tested_again_when_they_change() {
    let folder = TempDir::new().unwrap();
    let source = double(folder.path(), &json!({}));
    tool(folder.path(), "other", &json!({"n": 1}), &json!({}), "return { n: 1 };");
    let mut command = rcrt();
    command.args(["tool", "test", text(folder.path()), "--watch"]);
    let mut watching = Watching::start(command);
    for name in ["double", "other"] {
        let line = watching.next();
        assert_eq!((&line["name"], statuses(&line)), (&json!(name), vec!["passed"]), "{line}");
    }
    // Only the tool that changed.
    write(&source, "return { n: 5 };");
    let line = watching.next();
    assert_eq!((&line["name"], statuses(&line)), (&json!("double"), vec!["failed"]), "{line}");
    assert_eq!(line["published"], Value::Null);
    std::fs::write(source.with_extension("json"), "{").unwrap();
    let line = watching.next();
    assert!(line["errors"][0].as_str().unwrap().contains("double.json:1:"), "{line}");
    double(folder.path(), &json!({}));
    // The two files are written one after the other.
    let passed = std::iter::from_fn(|| Some(watching.next())).take(2).any(|line| statuses(&line) == ["passed"]);
    assert!(passed);
    assert_eq!(watching.ends_by(Signal::SIGTERM), 130);

    let wrong = run(&["tool", "test", "calculator", "--watch"]).ends_with(2);
    assert!(wrong.stderr.contains("cannot be watched"), "{}", wrong.stderr);
}

#[test]
fn dev_writes_drafts_of_what_passes() {
    let folder = TempDir::new().unwrap();
    let up = Running::start(&folder.path().join("data"), &["up", "--listen", "127.0.0.1:0"]);
    let tools = folder.path().join("tools");
    let source = double(&tools, &json!({}));
    let mut watching = Watching::start(up.command(&["tool", "dev", text(&tools)]));
    let line = watching.next();
    assert_eq!(statuses(&line), ["passed"], "{line}");
    let expected = json!({"version": 1, "is_in_effect": true, "text": "draft version 1"});
    assert_eq!(line["published"], expected, "{line}");
    let answer = || up.json(&["call", "double", r#"{"n": 2}"#])["output"]["n"].clone();
    assert_eq!(answer(), 4);
    let other = up.json(&["token", "--agent", "other", "--role", "emitter,subscriber"]);
    let unknown = up.run_as(&other, &["call", "double", "{}", "--output", "json"]).ends_with(4).json();
    assert_eq!(unknown["error_code"], "ToolNotFound", "{unknown}");

    // A version that fails its example does not replace the one that works.
    write(&source, "return { n: 5 };");
    let line = watching.next();
    assert_eq!((statuses(&line), &line["published"]), (vec!["failed"], &Value::Null), "{line}");
    assert_eq!(answer(), 4);
    write(&source, "return { n: (input.n ?? 0) + (input.n ?? 0) };");
    assert_eq!(watching.next()["published"]["version"], 2);
    assert_eq!(answer(), 4);

    // A new tool, and then a start without changes.
    tool(&tools, "one", &json!({"n": 1}), &json!({}), "return { n: 1 };");
    // The record can be seen before its source is written.
    let published = std::iter::from_fn(|| Some(watching.next())).take(2).find(|line| line["published"].is_object());
    assert_eq!(published.unwrap()["name"], "one");
    assert_eq!(watching.ends_by(Signal::SIGINT), 130);
    let mut again = Watching::start(up.command(&["tool", "dev", text(&tools)]));
    let texts = [again.next(), again.next()].map(|line| line["published"]["text"].as_str().unwrap().to_owned());
    assert_eq!(texts, ["draft version 2 is unchanged", "draft version 1 is unchanged"]);
    assert_eq!(again.ends_by(Signal::SIGINT), 130);

    // It is the same source as that of a bootstrap, which publishes the drafts.
    let bootstrap = || {
        let done = up.json(&["bootstrap", text(&tools)]);
        done["files"].as_array().unwrap().iter().map(|file| file["what"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(bootstrap(), ["updated", "updated"]);
    assert_eq!(bootstrap(), ["unchanged", "unchanged"]);
    let published = up.run_as(&other, &["call", "double", r#"{"n": 2}"#, "--output", "json"]).ends_with(0).json();
    assert_eq!(published["output"]["n"], 4, "{published}");

    // A draft of a published tool serves its author, and --publish everybody.
    write(&source, "return { n: 2 * (input.n ?? 0) + 0 };");
    let mut drafting = Watching::start(up.command(&["tool", "dev", text(&tools)]));
    let texts = [drafting.next(), drafting.next()].map(|line| line["published"]["text"].as_str().unwrap().to_owned());
    assert_eq!(texts, ["draft version 4", "version 2 is unchanged"]);
    assert_eq!(drafting.ends_by(Signal::SIGINT), 130);
    let mut publishing = Watching::start(up.command(&["tool", "dev", text(&tools), "--publish"]));
    let texts =
        [publishing.next(), publishing.next()].map(|line| line["published"]["text"].as_str().unwrap().to_owned());
    assert_eq!(texts, ["published version 5", "version 2 is unchanged"]);
    assert_eq!(publishing.ends_by(Signal::SIGINT), 130);
    the_records_of_the_server(&up, &tools);
    types_of_the_catalog(&up);
    let (status, stderr) = up.stop();
    assert_eq!(status.code(), Some(0), "{stderr}");
}

fn the_records_of_the_server(up: &Running, tools: &Path) {
    let body = "await context.api.createBreadcrumb({ title: 'Kept', schema_name: 'kept.v1', context: {} });\n\
                return { n: (await context.api.searchBreadcrumbs({ schema_name: 'kept.v1' })).length };";
    let source = tool(tools, "keeps", &json!({"n": 1}), &json!({}), body);
    let run = |more: &[&str]| up.json(&[&["tool", "run", text(&source)], more].concat())["output"]["n"].clone();
    assert_eq!(run(&[]), 1);
    assert_eq!(up.json(&["crumb", "list", "--schema", "kept.v1"]), json!([]));
    assert_eq!(run(&["--server-records"]), 1);
    assert_eq!(run(&["--server-records"]), 2);
}

fn types_of_the_catalog(up: &Running) {
    let types = up.run(&["tool", "types"]).ends_with(0).stdout;
    parses(&types);
    for part in ["\"double\": { input: Double.Input; output: Double.Output };", "namespace ReadFile {", "n: number;"] {
        assert!(types.contains(part), "{part} is not in {types}");
    }
    let one = up.run(&["tool", "types", "double"]).ends_with(0).stdout;
    assert!(one.contains("namespace Double {") && !one.contains("ReadFile"), "{one}");
    let unknown = up.run(&["tool", "types", "doubl"]).ends_with(3);
    assert!(unknown.stderr.contains("did you mean double?"), "{}", unknown.stderr);
}

#[track_caller]
fn parses(types: &str) {
    let compiled = rcrt_typescript::compile(types, "tools.ts", rcrt_typescript::Dialect::TypeScript);
    assert!(compiled.is_ok(), "{:?}\n{types}", compiled.err());
}

#[test]
fn files_have_types_without_a_server() {
    let folder = TempDir::new().unwrap();
    double(folder.path(), &json!({"required_secrets": ["KEY"], "permissions": {"net": ["api.example.com"]}}));
    let tree = json!({"input_schema": {
        "type": "object",
        "properties": {"tree": {"$ref": "#/$defs/a"}},
        "$defs": {"a": {"type": "object", "properties": {"next": {"$ref": "#/$defs/a"}}}},
    }});
    tool(folder.path(), "read-it", &json!({"n": 1}), &tree, "return { n: 1 };");
    let types = run(&["tool", "types", text(folder.path())]).ends_with(0).stdout;
    parses(&types);
    for part in [
        "    \"read-it\": { input: ReadIt.Input; output: ReadIt.Output };",
        "  /** Returns a number. */\n  namespace Double {\n    type Input = {\n      n?: number;\n    };\n",
        "    type Output = {\n      n: number;\n    };\n    type Context = RcrtContext<\"KEY\">;\n  }\n",
        "    type Input = {\n      tree?: InputA;\n    };\n    type InputA = {\n      next?: InputA;\n    };\n",
        "    type Context = RcrtContext<never>;\n",
    ] {
        assert!(types.contains(part), "{part} is not in {types}");
    }
    std::fs::write(folder.path().join("double.json"), "{").unwrap();
    let wrong = run(&["tool", "types", text(folder.path())]).ends_with(2);
    assert!(wrong.stderr.contains("double.json:1:"), "{}", wrong.stderr);
}

#[test]
fn a_new_tool_has_the_files_for_an_editor() {
    let folder = TempDir::new().unwrap();
    let dir = folder.path().join("tools");
    let new = |name: &str| run(&["tool", "new", name, "--dir", text(&dir), "--output", "json"]).ends_with(0).json();
    let names = |report: &Value| -> Vec<String> {
        let files = report["files"].as_array().unwrap().iter();
        files.map(|file| Path::new(file.as_str().unwrap()).file_name().unwrap().to_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&new("one")), ["one.json", "one.ts", "tsconfig.json", "rcrt.d.ts"]);
    assert_eq!(names(&new("two")), ["two.json", "two.ts"]);
    // The author's settings stay; the globals of an older program are replaced.
    let (settings, globals) = (dir.join("tsconfig.json"), dir.join("rcrt.d.ts"));
    let current = std::fs::read_to_string(&globals).unwrap();
    std::fs::write(&settings, "{} // mine").unwrap();
    std::fs::write(&globals, current.lines().next().unwrap()).unwrap();
    assert_eq!(names(&new("three")), ["three.json", "three.ts", "rcrt.d.ts"]);
    assert_eq!(std::fs::read_to_string(&settings).unwrap(), "{} // mine");
    assert_eq!(std::fs::read_to_string(&globals).unwrap(), current);
    // They are no records.
    let tested = run(&["tool", "test", text(&dir), "--output", "json"]).ends_with(0).json();
    assert_eq!(tested.as_array().unwrap().len(), 3, "{tested}");
    Ran::of(rcrt().args(["tool", "validate"]).arg(&dir).output().unwrap()).ends_with(0);
}
