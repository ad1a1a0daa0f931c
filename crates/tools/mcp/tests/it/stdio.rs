//! Servers that are programs in the jail.

use rcrt_breadcrumb::{BreadcrumbChanges, ErrorCode, NewSecret};
use rcrt_executors::Executor;
use rcrt_jail::command::Jail;
use rcrt_mcp::{McpExecutor, ServerState, Settings};
use rcrt_test_servers::network::Network;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::fixture::{FIRST_PAUSE, Fixture, config, helper};

/// A server of the older era in Python. `crash` ends the program; `env` returns its environment;
/// `garbage` writes lines that are no messages; `large` returns so many MiB; `fill` writes 8 MB to
/// its folder; `roots` returns the folders that it may use; `hold` waits for a file `go`.
const SCRIPT: &str = r#"
import json, os, sys, time
print("a banner", flush=True)
sys.stderr.write("starting\n")
names = ["echo", "crash", "env", "garbage", "large", "network", "fill", "roots", "hold"]
tools = [{"name": name, "description": "Does " + name + ".", "inputSchema": {"type": "object"}} for name in names]
def text(value):
    return {"content": [{"type": "text", "text": value}]}
def call(name, arguments):
    if name == "crash":
        sys.stderr.write("out of luck\n")
        sys.stderr.flush()
        os._exit(3)
    if name == "env":
        return text(json.dumps(dict(os.environ)))
    if name == "garbage":
        for _ in range(arguments.get("lines", 1)):
            print("not a message", flush=True)
        return text("still here")
    if name == "fill":
        with open("filled", "wb") as file:
            file.write(os.urandom(8 << 20))
        time.sleep(600)
    if name == "hold":
        open("held", "w").close()
        while not os.path.exists("go"):
            time.sleep(0.01)
        return text("held by " + os.environ["MODE"])
    if name == "roots":
        print(json.dumps({"jsonrpc": "2.0", "id": "r", "method": "roots/list"}), flush=True)
        while "result" not in (message := json.loads(sys.stdin.readline())):
            pass
        return text(json.dumps(message["result"]))
    if name == "large":
        return text("x" * (arguments["mb"] << 20))
    if name == "network":
        import socket
        try:
            socket.create_connection(("127.0.0.1", int(arguments["port"])), 2)
            return text("connected")
        except OSError as error:
            return text("refused: " + str(error))
    return text(arguments.get("text", ""))
for line in sys.stdin:
    message = json.loads(line)
    method, number = message["method"], message.get("id")
    if number is None:
        continue
    if method == "initialize":
        result = {"protocolVersion": "2024-11-05", "capabilities": {"tools": {}},
                  "serverInfo": {"name": "script", "version": os.environ.get("MODE", "1")}}
    elif method == "tools/list":
        result = {"tools": tools}
    elif method == "tools/call":
        result = call(message["params"]["name"], message["params"].get("arguments", {}))
    else:
        error = {"code": -32601, "message": "not known"}
        print(json.dumps({"jsonrpc": "2.0", "id": number, "error": error}), flush=True)
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": number, "result": result}), flush=True)
"#;

/// Skips a test if this machine does not support the jail, or has no Python for it. If
/// `RCRT_TEST_NEEDS_JAIL` is set, that is a failure.
async fn is_missing() -> bool {
    let reason = Jail::open(helper()).await.refusal().map(str::to_owned);
    let python = rcrt_jail::command::FilesystemView::of_programs(false).program("python3");
    let reason = reason.or_else(|| python.err().map(|error| error.to_string()));
    let Some(reason) = reason else { return false };
    assert!(std::env::var_os("RCRT_TEST_NEEDS_JAIL").is_none(), "{reason}");
    #[allow(clippy::print_stderr)]
    {
        eprintln!("not tried: {reason}");
    }
    true
}

fn script(more: Value) -> rcrt_mcp::ServerConfig {
    let mut transport = json!({"type": "stdio", "command": "python3", "args": ["-u", "-c", SCRIPT]});
    transport.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    config(json!({"name": "script", "transport": transport}))
}

#[tokio::test]
async fn a_program_in_the_jail_is_a_server() {
    if is_missing().await {
        return;
    }
    let fixture = Fixture::with(Network::new()).await;
    fixture.add(script(json!({"env": {"MODE": "test"}}))).await;
    let status = fixture.records("mcp.status.v1").await.remove(0).context.unwrap();
    assert_eq!(status["protocol_version"], "2024-11-05");
    assert_eq!(fixture.run("script__echo", json!({"text": "hi"})).await.unwrap(), "hi");
    assert_eq!(fixture.run("script__garbage", json!({})).await.unwrap(), "still here");
    let environment: Value =
        serde_json::from_str(fixture.run("script__env", json!({})).await.unwrap().as_str().unwrap()).unwrap();
    assert_eq!(environment["MODE"], "test");
    // Nothing of this process's environment, such as what cargo sets.
    assert_eq!(environment.get("CARGO_PKG_NAME"), None);
    // It has a network of its own.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let reached = fixture.run("script__network", json!({"port": port})).await.unwrap();
    assert!(reached.as_str().unwrap().starts_with("refused"), "{reached}");
    fixture.stop().await;
}

#[tokio::test]
async fn a_program_that_ends_during_a_call_is_started_again() {
    if is_missing().await {
        return;
    }
    let fixture = Fixture::with(Network::new()).await;
    fixture.add(script(json!({}))).await;
    let mut watch = fixture.watch().await;
    let failure = fixture.run("script__crash", json!({})).await.unwrap_err();
    assert_eq!((failure.code, failure.is_retryable), (ErrorCode::ExecutionFailed, false), "{failure}");
    assert_eq!(fixture.run("script__echo", json!({"text": "again"})).await.unwrap(), "again");
    watch.status(|status| status.state == ServerState::Error).await;
    watch.status(|status| status.state == ServerState::Connected).await;
    fixture.stop().await;
}

#[tokio::test]
async fn a_program_that_sends_too_much_is_stopped_and_says_why() {
    if is_missing().await {
        return;
    }
    let fixture = Fixture::with(Network::new()).await;
    fixture.add(script(json!({}))).await;
    assert_eq!(fixture.run("script__large", json!({"mb": 9})).await.unwrap().as_str().unwrap().len(), 9 << 20);
    for (tool, input, code, why) in [
        ("script__large", json!({"mb": 11}), ErrorCode::ResourceExhausted, "a message of more than 10 MB"),
        (
            "script__garbage",
            json!({"lines": 101}),
            ErrorCode::ExecutionFailed,
            "more than 100 lines that are not messages",
        ),
    ] {
        let mut watch = fixture.watch().await;
        let failure = fixture.run(tool, input).await.unwrap_err();
        assert_eq!(failure.code, code, "{failure}");
        assert!(failure.message.contains("\"script\"") && failure.message.contains(why), "{failure}");
        watch.status(|status| status.error.as_ref().is_some_and(|error| error.contains(why))).await;
        watch.status(|status| status.state == ServerState::Connected).await;
        assert_eq!(fixture.run("script__echo", json!({"text": "again"})).await.unwrap(), "again");
    }
    fixture.stop().await;
}

#[tokio::test]
async fn a_call_ends_in_the_program_in_which_it_began_when_the_record_is_changed() {
    if is_missing().await {
        return;
    }
    let fixture = Fixture::with(Network::new()).await;
    let id = fixture.add(script(json!({"env": {"MODE": "old"}}))).await;
    let folder = fixture.folder.path().join("mcp/script");
    let call = fixture.call("script__hold", json!({})).await;
    let executor = McpExecutor::new(fixture.servers.clone());
    let replacing = async {
        while !folder.join("held").exists() {
            tokio::task::yield_now().await;
        }
        let mut watch = fixture.watch().await;
        let context = script(json!({"env": {"MODE": "new"}})).context();
        let changes = BreadcrumbChanges { context: Some(context), ..BreadcrumbChanges::default() };
        fixture.tenant.breadcrumbs.update(id, 1, changes).await.unwrap();
        watch.status(|status| status.implementation.as_deref() == Some("script new")).await;
        let environment = fixture.run("script__env", json!({})).await.unwrap();
        assert!(environment.as_str().unwrap().contains("\"MODE\": \"new\""), "{environment}");
        std::fs::write(folder.join("go"), "").unwrap();
    };
    let (output, ()) = tokio::join!(executor.execute(call, CancellationToken::new()), replacing);
    assert_eq!(output.result.unwrap(), "held by old");
    fixture.stop().await;
}

#[tokio::test]
async fn a_program_may_use_its_own_folder_or_those_that_its_arguments_name() {
    if is_missing().await {
        return;
    }
    let fixture = Fixture::with(Network::new()).await;
    let mut named = script(json!({"args": ["-u", "-c", SCRIPT, "/usr", "/work/notes", "/no/such/folder", "--all"]}));
    named.name = "named".into();
    fixture.add(script(json!({}))).await;
    fixture.add(named).await;
    let roots = async |tool: &str| {
        let text = fixture.run(tool, json!({})).await.unwrap();
        serde_json::from_str::<Value>(text.as_str().unwrap()).unwrap()["roots"].clone()
    };
    assert_eq!(roots("script__roots").await, json!([{"uri": "file:///work"}]));
    assert_eq!(roots("named__roots").await, json!([{"uri": "file:///usr"}, {"uri": "file:///work/notes"}]));
    fixture.stop().await;
}

#[tokio::test]
async fn a_program_gets_a_readable_secret_and_no_result_has_it() {
    if is_missing().await {
        return;
    }
    let fixture = Fixture::with(Network::new()).await;
    let secret = NewSecret { readable: true, ..NewSecret::new("KEY", "a-secret-value") };
    let secret = fixture.tenant.breadcrumbs.create_secret(secret).await.unwrap();
    let mut watch = fixture.watch().await;
    let id = fixture.create(&script(json!({"env": {"KEY": "${KEY}"}}))).await;
    watch.status(|status| status.error.as_ref().is_some_and(|error| error.contains("is not granted"))).await;
    fixture.tenant.breadcrumbs.grant_secret(secret.id, id).await.unwrap();
    watch.status(|status| status.state == ServerState::Connected).await;
    let environment = fixture.run("script__env", json!({})).await.unwrap();
    let environment = environment.as_str().unwrap();
    assert!(environment.contains("\"KEY\"") && !environment.contains("a-secret-value"), "{environment}");
    fixture.stop().await;
}

#[tokio::test]
async fn a_program_whose_folder_holds_too_much_is_stopped_until_it_is_emptied() {
    if is_missing().await {
        return;
    }
    let small = |settings| Settings { most_bytes: 4 << 20, measure_every: FIRST_PAUSE, ..settings };
    let fixture = Fixture::with_settings(Network::new(), small).await;
    fixture.add(script(json!({}))).await;
    let mut watch = fixture.watch().await;
    let failure = fixture.run("script__fill", json!({})).await.unwrap_err();
    assert_eq!(failure.code, ErrorCode::ExecutionFailed, "{failure}");
    watch.status(|status| status.error.as_ref().is_some_and(|error| error.contains("--workdir-mb"))).await;
    let failure = fixture.run("script__echo", json!({})).await.unwrap_err();
    assert_eq!(failure.code, ErrorCode::ResourceExhausted, "{failure}");
    std::fs::remove_file(fixture.folder.path().join("mcp/script/filled")).unwrap();
    watch.status(|status| status.state == ServerState::Connected).await;
    assert_eq!(fixture.run("script__echo", json!({"text": "again"})).await.unwrap(), "again");
    fixture.stop().await;
}

#[tokio::test]
async fn a_program_that_does_not_start_says_why() {
    if is_missing().await {
        return;
    }
    let fixture = Fixture::with(Network::new()).await;
    let mut watch = fixture.watch().await;
    let missing = json!({"name": "missing", "transport": {"type": "stdio", "command": "no-such-program"}});
    fixture.create(&config(missing)).await;
    let status = watch.status(|status| status.state == ServerState::Error).await;
    assert!(status.error.unwrap().contains("no-such-program"));
    let fails = json!({"name": "fails", "transport": {"type": "stdio", "command": "python3", "args": ["-c", "raise SystemExit('bad luck')"]}});
    fixture.create(&config(fails)).await;
    let status = watch.status(|status| status.server == "fails").await;
    let error = status.error.unwrap();
    assert!(error.starts_with("the connection ended before the server responded; check transport.command"), "{error}");
    assert!(error.contains("bad luck"), "{error}");
    fixture.stop().await;
}
