//! The native tools through the public API, with the operator's options: one real system.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::program::{Ran, Running};

#[test]
fn native_tools_work_through_the_public_api() {
    let folder = TempDir::new().unwrap();
    let (data, work) = (folder.path().join("data"), folder.path().join("desk"));
    let page = page();
    let allowed = format!("web_fetch={page}");
    let up = Running::start(
        &data,
        &[
            "up",
            "--listen",
            "127.0.0.1:0",
            "--workdir",
            work.to_str().unwrap(),
            "--enable-tool",
            "bash",
            "--disable-tool",
            "web_browse",
            "--timezone",
            "Europe/Berlin",
            "--allow-private-host",
            &allowed,
        ],
    );
    catalog(&up);
    waiting(&up);
    files(&up, &work);
    programs(&up, &work);
    web(&up, page);
    memory(&up);
    large_results(&up, &work);
    deadlines(&up);
    profiles(&up);
    schedules(&up);
    let (status, stderr) = up.stop();
    assert_eq!(status.code(), Some(0), "{stderr}");
}

/// Calls the tool and returns its output.
fn output(up: &Running, tool: &str, input: &Value) -> Value {
    up.json(&["call", tool, &input.to_string()])["output"].clone()
}

fn refused(up: &Running, tool: &str, input: &Value, code: &str, says: &str) {
    let response = up.run(&["call", tool, &input.to_string(), "-o", "json"]).ends_with(4).json();
    assert_eq!(response["error_code"], code, "{response}");
    assert!(response["error"].as_str().unwrap().contains(says), "{response}");
}

/// The row with this name.
fn row<'l>(list: &'l Value, name: &str) -> &'l Value {
    let row = list.as_array().unwrap().iter().find(|row| row["name"] == name);
    row.unwrap_or_else(|| panic!("{name} is not in {list}"))
}

fn catalog(up: &Running) {
    let found = up.json(&["tool", "find", "append", "text", "to", "a", "file", "--limit", "3"]);
    assert_eq!(found["tools"][0]["name"], "append_file");
    assert_eq!(found["hints"][0]["id"], "files");
    let table = up.run(&["tool", "find", "append a file", "--output", "text"]).ends_with(0);
    assert!(table.stdout.starts_with("SCORE ") && table.stdout.contains("append_file"), "{}", table.stdout);
    assert!(table.stderr.contains("services: files (family)"), "{}", table.stderr);
    let list = up.json(&["tool", "list"]);
    assert_eq!(row(&list, "read_file")["source"], "native");
    assert_eq!(row(&list, "calculator")["source"], "sandbox");
    assert_eq!(row(&list, "public-holidays")["source"], "rest");
    let names = |format: &str, at: &str, name: &str| -> Vec<String> {
        let list = up.run(&["tool", "list", "--format", format]).ends_with(0).json();
        let tools = list.pointer(at).unwrap().as_array().unwrap();
        tools.iter().map(|tool| tool.pointer(name).unwrap().as_str().unwrap().to_owned()).collect()
    };
    let offered = names("rcrt", "/tools", "/name");
    for name in ["read_file", "web_fetch", "save_to_working_memory", "schedule_task", "get_tool_guide", "calculator"] {
        assert!(offered.iter().any(|offered| offered == name), "{name} is not among {offered:?}");
    }
    assert_eq!(names("openai", "", "/function/name").len(), offered.len());
    assert_eq!(names("openai-responses", "", "/name").len(), offered.len());
    assert_eq!(names("anthropic", "", "/name").len(), offered.len());
    assert_eq!(names("mcp", "/tools", "/name"), offered);
    let shown = up.run(&["tool", "show", "write_file"]).ends_with(0).stdout;
    assert!(shown.contains("native") && shown.contains("the same call again changes nothing more"), "{shown}");
}

/// A tool that waits for something is not offered, and all outputs say what it waits for.
fn waiting(up: &Running) {
    let list = up.json(&["tool", "list"]);
    let missing_requirements = |name: &str| row(&list, name)["missing_requirements"].to_string();
    assert!(
        missing_requirements("web_browse").contains("--disable-tool web_browse"),
        "{}",
        missing_requirements("web_browse")
    );
    assert!(missing_requirements("web_search").contains("--search"), "{}", missing_requirements("web_search"));
    assert!(up.run(&["tool", "list"]).ends_with(0).stdout.contains("WAITS: "));
    refused(up, "web_search", &json!({"query": "x"}), "PermissionDenied", "--search");
    refused(up, "web_browse", &json!({"url": "https://example.com"}), "PermissionDenied", "--disable-tool");
    let report = up.json(&["doctor"]);
    assert_eq!(report["tools"]["from"], "catalog");
    let waiting = &report["tools"]["waiting"];
    assert!(row(waiting, "web_search")["missing_requirements"][0].as_str().unwrap().contains("--search"), "{waiting}");
    let text = up.run(&["doctor"]).stdout;
    assert!(text.contains("web_browse") && text.contains("--disable-tool web_browse"), "{text}");
}

fn files(up: &Running, work: &Path) {
    let made = output(up, "write_file", &json!({"path": "notes/a.md", "content": "# A\n"}));
    assert_eq!(made, json!({"path": "notes/a.md", "bytes": 4, "created": true}));
    output(up, "append_file", &json!({"path": "notes/a.md", "content": "more\n"}));
    assert_eq!(output(up, "read_file", &json!({"path": "notes/a.md"})), "# A\nmore\n");
    assert_eq!(std::fs::read_to_string(work.join("notes/a.md")).unwrap(), "# A\nmore\n");
    refused(up, "read_file", &json!({"path": "../data/token"}), "PermissionDenied", "outside of the working folder");
    refused(up, "read_file", &json!({"pfad": "x"}), "InvalidArguments", "");
}

/// Programs run if this machine has the protections of the jail; otherwise the tools wait.
fn programs(up: &Running, work: &Path) {
    let list = up.json(&["tool", "list"]);
    if row(&list, "bash").get("missing_requirements").is_some() {
        refused(up, "bash", &json!({"command": "true"}), "PermissionDenied", "");
    } else {
        let ran = output(up, "bash", &json!({"command": "pwd; cat notes/a.md; echo made > made.txt; exit 3"}));
        assert_eq!((&ran["exit_code"], &ran["stderr"]), (&json!(3), &json!("")), "{ran}");
        assert!(ran["stdout"].as_str().unwrap().ends_with("# A\nmore\n"), "{ran}");
        assert_eq!(std::fs::read_to_string(work.join("made.txt")).unwrap(), "made\n");
        // `read_file` accepts the path inside the jail and reads the same file.
        let path = ran["stdout"].as_str().unwrap().lines().next().unwrap().to_owned() + "/made.txt";
        assert_eq!(output(up, "read_file", &json!({"path": path})), "made\n");
        let data = up.data.join("token");
        let ran = output(up, "bash", &json!({"command": format!("cat {}", data.display())}));
        assert_ne!(ran["exit_code"], 0, "the token can be read: {ran}");
    }
    if row(&list, "execute_python_script").get("missing_requirements").is_none() {
        let script = "import json, os\nprint(json.loads(os.environ['RCRT_INPUT'])['n'] * 2)";
        let ran = output(up, "execute_python_script", &json!({"script": script, "input_data": {"n": 21}}));
        assert_eq!(ran.as_str().map(str::trim), Some("42"), "{ran}");
    }
}

/// A server that responds to every request with one page. It stops with the test's process.
fn page() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let mut connection = connection.unwrap();
            let mut asked = Vec::new();
            let mut byte = [0];
            while !asked.ends_with(b"\r\n\r\n") && connection.read(&mut byte).unwrap_or(0) == 1 {
                asked.push(byte[0]);
            }
            let body = "<html><head><title>A page</title></head><body><p>Hello from the page</p></body></html>";
            let _ = write!(
                connection,
                "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            );
        }
    });
    address
}

fn web(up: &Running, page: SocketAddr) {
    // The operator allowed one private port, not the next one.
    let other = format!("http://{}:{}/", page.ip(), page.port() ^ 1);
    refused(
        up,
        "web_fetch",
        &json!({"url": other}),
        "PermissionDenied",
        &format!("--allow-private-host web_fetch={}", &other[7..other.len() - 1]),
    );
    let text = output(up, "web_fetch", &json!({"url": format!("http://{page}/")}));
    let text = text.as_str().unwrap();
    assert!(text.contains("--- Content ---") && text.contains("Hello from the page"), "{text}");
    refused(up, "web_fetch", &json!({"url": "http://169.254.169.254/latest/"}), "PermissionDenied", "169.254.169.254");
}

fn memory(up: &Running) {
    let call = |session: &str, tool: &str, input: Value| {
        up.run(&["call", tool, &input.to_string(), "--session", session, "-o", "json"])
    };
    let saved = call("one", "save_to_working_memory", json!({"key": "plan", "value": {"step": 1}})).ends_with(0);
    assert_eq!(saved.json()["output"]["replaced"], false);
    let got = call("one", "get_from_working_memory", json!({"key": "plan"})).ends_with(0).json();
    assert!(got["output"].to_string().contains("step"), "{got}");
    let other = call("two", "list_working_memory", json!({})).ends_with(0).json();
    assert_eq!(other["output"]["entries"], json!([]), "{other}");
    let guides = output(up, "list_tool_guides", &json!({}));
    assert!(guides.to_string().contains("files"), "{guides}");
    let guide = output(up, "get_tool_guide", &json!({"name": "files"}));
    assert!(guide.as_str().unwrap().contains("read_file"), "{guide}");
}

fn large_results(up: &Running, work: &Path) {
    let section = |n: usize| format!("# Section {n}\n\n{}\n\n", format!("Words of section {n}. ").repeat(1000));
    std::fs::write(work.join("long.md"), (1..=10).map(section).collect::<String>()).unwrap();
    let input = json!({"path": "long.md", "max_chars": 400_000}).to_string();
    let response = up.json(&["call", "read_file", &input, "--session", "long"]);
    let table = response["output"]["text"].as_str().unwrap();
    assert!(table.chars().count() < 20_000 && table.contains("Section 7"), "{table}");
    // For people, the index alone.
    let printed = up.run(&["call", "read_file", &input, "--session", "long"]).ends_with(0).stdout;
    assert!(
        printed.starts_with("The result of read_file has") && printed.contains("| # | Heading | Key |"),
        "{printed}"
    );
    let key = response["metadata"]["large_result"]["key"].as_str().unwrap().to_owned();
    let found = output(up, "result_search", &json!({"key": key, "query": "section 7"}));
    assert!(found["found"].as_u64().unwrap() > 0, "{found}");
    let slice = output(up, "result_slice", &json!({"key": key, "start": 0, "length": 11}));
    assert!(slice.as_str().unwrap().contains("# Section 1"), "{slice}");
    let cut = up.json(&["call", "read_file", &input, "--max-result-chars", "2000"])["output"].clone();
    let cut = cut.as_str().unwrap();
    assert!(cut.chars().count() <= 2000 && cut.contains("; the file continues at start_line "), "{cut}");
}

fn deadlines(up: &Running) {
    let ran = up.run(&["call", "timer", r#"{"seconds": 200}"#, "--deadline", "0.3", "-o", "json"]).ends_with(4);
    let response = ran.json();
    assert_eq!((&response["error_code"], &response["is_retryable"]), (&json!("Timeout"), &json!(true)), "{response}");
}

fn profiles(up: &Running) {
    let token = |profile: &str| up.run(&["token", "--profile", profile]).ends_with(0).stdout.trim().to_owned();
    let subagent = token("subagent");
    let sees = |token: &str, name: &str| {
        let list = up.run(&["tool", "list", "--format", "rcrt", "--token", token]).ends_with(0).json();
        list["tools"].as_array().unwrap().iter().any(|tool| tool["name"] == name)
    };
    assert!(sees(&token("scheduled"), "cancel_scheduled_task") && !sees(&subagent, "cancel_scheduled_task"));
    let input = r#"{"name": "x"}"#;
    let ran = up.run(&["call", "cancel_scheduled_task", input, "--token", &subagent, "-o", "json"]).ends_with(4);
    assert_eq!(ran.json()["error_code"], "PermissionDenied", "{}", ran.stdout);
    // It cannot get a profile with more rights.
    up.run(&["token", "--profile", "main", "--token", &subagent]).ends_with(6);
    let listed = up.run(&["tool", "list", "--profile", "subagent"]).ends_with(0).stdout;
    assert!(!listed.contains("cancel_scheduled_task") && listed.contains("schedule_task"), "{listed}");
    // An agent with this profile cannot get another.
    let made = up.json(&["token", "--agent", "helper", "--role", "emitter,subscriber", "--profile", "subagent"]);
    let as_helper = |arguments: &[&str]| {
        let mut command = up.command(arguments);
        command.env("RCRT_OWNER_ID", made["owner_id"].as_str().unwrap());
        command.env("RCRT_AGENT_ID", made["id"].as_str().unwrap());
        command.env("RCRT_AGENT_KEY", made["agent_key"].as_str().unwrap());
        Ran::of(command.output().unwrap())
    };
    let own = as_helper(&["token"]).ends_with(0).stdout.trim().to_owned();
    assert!(!sees(&own, "cancel_scheduled_task"));
    as_helper(&["token", "--profile", "main"]).ends_with(6);
}

fn schedules(up: &Running) {
    let mut watch = up.command(&["crumb", "watch", "--schema", "schedule.fired.v1", "--since", "0"]);
    let mut fired = watch.stdout(Stdio::piped()).spawn().unwrap();
    let task = json!({"name": "soon", "cron": "*/10 * * * * *", "description": "Often", "run_once": true});
    let made = output(up, "schedule_task", &task);
    assert_eq!((&made["timezone"], &made["run_once"]), (&json!("Europe/Berlin"), &json!(true)), "{made}");
    let mut events = BufReader::new(fired.stdout.take().unwrap()).lines();
    let event: Value = serde_json::from_str(&events.next().unwrap().unwrap()).unwrap();
    assert_eq!(event["type"], "breadcrumb.created");
    fired.kill().unwrap();
    fired.wait().unwrap();
    let yearly = json!({"name": "yearly", "cron": "0 9 1 1 *", "description": "Rarely"});
    output(up, "schedule_task", &yearly);
    let listed = output(up, "list_scheduled_tasks", &json!({}));
    assert!(listed["tasks"].to_string().contains("yearly"), "{listed}");
    output(up, "cancel_scheduled_task", &json!({"name": "yearly"}));
    let listed = output(up, "list_scheduled_tasks", &json!({}));
    assert!(!listed["tasks"].to_string().contains("yearly"), "{listed}");
}
