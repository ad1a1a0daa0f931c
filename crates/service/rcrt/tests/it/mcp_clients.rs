//! `rcrt mcp`: a client that the program configures, and one that starts it.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::program::{Ran, Running, rcrt};
use crate::replaced::until;

#[test]
fn a_client_is_configured_beside_what_its_file_has() {
    let folder = TempDir::new().unwrap();
    let install = |arguments: &[&str]| {
        let mut command = rcrt();
        command.args(["mcp", "install"]).args(arguments).args(["--data", "some data"]).current_dir(&folder);
        Ran::of(command.output().unwrap())
    };
    let read = |file: &str| std::fs::read_to_string(folder.path().join(file)).unwrap();
    let shown = install(&["claude", "--print"]).ends_with(0);
    assert!(shown.stdout.starts_with(".mcp.json:\n{"), "{}", shown.stdout);
    assert!(!folder.path().join(".mcp.json").exists(), "--print writes nothing");

    std::fs::write(folder.path().join(".mcp.json"), r#"{"other": 1, "mcpServers": {"files": {"command": "x"}}}"#)
        .unwrap();
    install(&["claude"]).ends_with(0);
    let written: Value = serde_json::from_str(&read(".mcp.json")).unwrap();
    assert_eq!((&written["other"], &written["mcpServers"]["files"]), (&json!(1), &json!({"command": "x"})));
    let entry = &written["mcpServers"]["rcrt"];
    assert!(entry["command"].as_str().unwrap().ends_with("rcrt"), "{entry}");
    let data = std::fs::canonicalize(folder.path()).unwrap().join("some data");
    let expected = ["--server", "http://127.0.0.1:8081/", "--data", data.to_str().unwrap(), "mcp", "serve"];
    assert_eq!(entry["args"], json!(expected));
    // Again, it has nothing to do; another server of the name stays.
    assert!(install(&["claude"]).ends_with(0).stderr.contains("already"));
    let taken = install(&["claude", "--name", "files"]).ends_with(1);
    assert!(taken.stderr.contains("--name"), "{}", taken.stderr);
    install(&["vscode"]).ends_with(0);
    let written: Value = serde_json::from_str(&read(".vscode/mcp.json")).unwrap();
    assert_eq!(written["servers"]["rcrt"]["type"], "stdio");

    let file = folder.path().join("config.toml");
    std::fs::write(&file, "# Mine\nmodel = \"m\"\n").unwrap();
    let arguments = ["codex", "--file", file.to_str().unwrap()];
    install(&arguments).ends_with(0);
    let text = read("config.toml");
    assert!(text.starts_with("# Mine\nmodel = \"m\"\n\n[mcp_servers.rcrt]\n"), "{text}");
    let table: toml::Table = text.parse().unwrap();
    assert_eq!(table["mcp_servers"]["rcrt"]["args"].as_array().unwrap().len(), 6);
    assert!(install(&arguments).ends_with(0).stderr.contains("already"));
    std::fs::write(&file, "model = ").unwrap();
    let unreadable = install(&arguments).ends_with(1);
    assert!(unreadable.stderr.contains("[mcp_servers.rcrt]"), "{}", unreadable.stderr);
    install(&["cursor", "--name", "a b"]).ends_with(2);
}

/// The program as a client starts it.
struct Served {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    /// The methods of the notifications that came before a result.
    notified: Vec<String>,
}

impl Served {
    fn start(up: &Running) -> Self {
        Self::of(up.command(&["mcp", "serve"]))
    }

    fn of(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, stdin, stdout, notified: Vec::new() }
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.stdin.as_mut().unwrap(), "{message}").unwrap();
    }

    fn next(&mut self) -> Value {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    fn result(&mut self, method: &str, params: &Value) -> Value {
        self.send(&json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}));
        loop {
            let message = self.next();
            if message["id"] == 1 {
                assert!(message["error"].is_null(), "{message}");
                return message["result"].clone();
            }
            self.notified.extend(message["method"].as_str().map(str::to_owned));
        }
    }

    fn end(mut self) {
        self.stdin.take();
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
    }
}

#[test]
fn clients_of_both_eras_use_the_tools_over_stdin_and_stdout() {
    let folder = TempDir::new().unwrap();
    let up = Running::start(&folder.path().join("data"), &["up", "--listen", "127.0.0.1:0"]);
    let sum = json!({"name": "calculator", "arguments": {"expression": "6 * 7"}});

    let mut earlier = Served::start(&up);
    let client = json!({"name": "a test", "version": "1"});
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
    let begun = earlier.result("initialize", &params);
    assert_eq!((&begun["protocolVersion"], &begun["serverInfo"]["name"]), (&json!("2025-06-18"), &json!("rcrt")));
    earlier.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    let tools = earlier.result("tools/list", &json!({}));
    let calculator = tools["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == "calculator").unwrap();
    assert_eq!((&calculator["outputSchema"]["type"], &calculator["title"]), (&json!("object"), &json!("Calculator")));
    assert_eq!(earlier.result("tools/call", &sum)["structuredContent"]["result"], 42);
    // A guide comes with the program.
    let prompts = earlier.result("prompts/list", &json!({}));
    assert!(!prompts["prompts"].as_array().unwrap().is_empty(), "{prompts}");
    earlier.end();

    let mut latest = Served::start(&up);
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}});
    let with_meta = |mut params: Value| {
        params["_meta"] = meta.clone();
        params
    };
    let found = latest.result("server/discover", &with_meta(json!({})));
    assert!(found["supportedVersions"].as_array().unwrap().contains(&json!("2026-07-28")), "{found}");
    let got = latest.result("tools/call", &with_meta(sum));
    assert_eq!((&got["structuredContent"]["result"], &got["resultType"]), (&json!(42), &json!("complete")));
    latest.end();
    assert_eq!(up.stop().0.code(), Some(0));
}

/// For an agent that reads only its own calls.
fn caller(up: &Running) -> Served {
    let bot = up.json(&["token", "--agent", "bot", "--role", "caller"]);
    let mut command = up.command(&["mcp", "serve"]);
    for (variable, member) in [("RCRT_OWNER_ID", "owner_id"), ("RCRT_AGENT_ID", "id"), ("RCRT_AGENT_KEY", "agent_key")]
    {
        command.env(variable, bot[member].as_str().unwrap());
    }
    Served::of(command)
}

#[test]
fn a_caller_is_notified_of_changes_of_the_tools() {
    let folder = TempDir::new().unwrap();
    let up = Running::start(&folder.path().join("data"), &["up", "--listen", "127.0.0.1:0"]);
    let mut served = caller(&up);
    let client = json!({"name": "a test", "version": "1"});
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
    served.result("initialize", &params);
    served.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    // The first tools can be offered before the client's catalog is read for the first time.
    let mut number = 0;
    until(|| {
        number += 1;
        let name = format!("greet{number}");
        let tool = json!({"title": name, "schema_name": "tool.code.v1", "tags": ["tool", format!("tool:{name}")],
        "context": {
            "name": name, "description": "Greets.", "version": "1.0.0",
            "code": {"language": "typescript", "source": "export async function execute() { return 'hi'; }"},
            "input_schema": {"type": "object"}, "output_schema": {"type": "string"},
            "permissions": {"net": false}, "examples": [{"description": "A call", "input": {}, "output": "hi"}],
        }});
        up.json(&["crumb", "create", &tool.to_string()]);
        until(|| {
            let tools = served.result("tools/list", &json!({}))["tools"].clone();
            tools.as_array().unwrap().iter().any(|tool| tool["name"] == *name).then_some(())
        });
        served.notified.iter().any(|method| method == "notifications/tools/list_changed").then_some(())
    });
    served.end();
    assert_eq!(up.stop().0.code(), Some(0));
}

#[test]
fn a_caller_is_notified_of_the_progress_of_its_calls() {
    let folder = TempDir::new().unwrap();
    let up = Running::start(&folder.path().join("data"), &["up", "--listen", "127.0.0.1:0"]);
    let source = "export async function execute(_input: unknown, context: any) {
        context.progress(0.5, 'half');
        await new Promise<void>((resolve) => setTimeout(resolve, 1500));
        return 'done';
    }";
    let tool = json!({"title": "slow", "schema_name": "tool.code.v1", "tags": ["tool", "tool:slow"], "context": {
        "name": "slow", "description": "Takes a while.", "version": "1.0.0",
        "code": {"language": "typescript", "source": source},
        "input_schema": {"type": "object"}, "output_schema": {"type": "string"},
        "permissions": {"net": false}, "limits": {"timeout_ms": 10_000},
        "examples": [{"description": "A call", "input": {}, "output": "done"}],
    }});
    up.json(&["crumb", "create", &tool.to_string()]);
    until(|| Some(up.run(&["call", "slow", "{}"])).filter(|ran| ran.status == 0));
    let mut served = caller(&up);
    let mut meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}});
    served.result("server/discover", &json!({"_meta": meta}));
    meta["progressToken"] = json!("p");
    let params = json!({"name": "slow", "arguments": {}, "_meta": meta});
    served.send(&json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}));
    let notified = served.next();
    assert_eq!(notified["method"], "notifications/progress", "{notified}");
    let params = &notified["params"];
    assert_eq!((&params["progress"], &params["message"]), (&json!(50.0), &json!("half")), "{params}");
    let answer = served.next();
    assert_eq!(answer["result"]["content"][0]["text"], "done", "{answer}");
    served.end();
    assert_eq!(up.stop().0.code(), Some(0));
}
