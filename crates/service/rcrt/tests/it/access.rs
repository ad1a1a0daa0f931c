//! Agents, callers with allow lists, tokens and the audit log, through the command line.

use std::process::Command;

use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::program::{Ran, Running};

/// The key that `rcrt agent new` printed, as variables.
struct Key(Vec<(String, String)>);

impl Key {
    #[track_caller]
    fn of(printed: &Ran) -> Self {
        let pairs = printed.stdout.lines().map(|line| line.split_once('=').unwrap());
        let key = Self(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect());
        let names: Vec<&str> = key.0.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["RCRT_OWNER_ID", "RCRT_AGENT_ID", "RCRT_AGENT_KEY"]);
        key
    }

    fn id(&self) -> &str {
        &self.0[1].1
    }

    fn run(&self, up: &Running, arguments: &[&str]) -> Ran {
        let mut command: Command = up.command(arguments);
        command.envs(self.0.iter().cloned());
        Ran::of(command.output().unwrap())
    }
}

#[test]
fn a_caller_is_made_limited_audited_and_deleted() {
    let folder = TempDir::new().unwrap();
    let up = Running::start(&folder.path().join("data"), &["up", "--listen", "127.0.0.1:0"]);
    let bot = Key::of(&up.run(&["agent", "new", "bot", "--role", "caller", "--tool", "calculator"]).ends_with(0));
    a_caller_calls_its_tools_and_nothing_else(&up, &bot);
    the_tools_of_a_caller_publish_and_reveal_nothing(&up);
    a_caller_reads_its_large_results(&up);
    an_emitter_gets_its_responses_without_events(&up);
    agents_are_shown_and_changed(&up, &bot);
    tokens_are_listed_and_revoked(&up, &bot);
    a_grant_opens_the_short_view(&up);
    let bot = a_key_is_replaced(&up, &bot);
    up.run(&["agent", "delete", "bot"]).ends_with(0);
    bot.run(&up, &["call", "calculator", r#"{"expression": "1"}"#]).ends_with(6);
    up.run(&["agent", "show", "bot"]).ends_with(3);
    the_audit_log_has_all_of_it(&up, &bot);
    assert_eq!(up.stop().0.code(), Some(0));
}

fn a_caller_calls_its_tools_and_nothing_else(up: &Running, bot: &Key) {
    let ran = bot.run(up, &["call", "calculator", r#"{"expression": "6 * 7"}"#]).ends_with(0);
    assert!(ran.stdout.contains("42"), "{}", ran.stdout);
    let ran = bot.run(up, &["call", "echo", r#"{"message": "hi"}"#]).ends_with(4);
    assert!(ran.stderr.contains("PermissionDenied: the tool echo is not on the allow list"), "{}", ran.stderr);
    let listed = bot.run(up, &["tool", "list"]).ends_with(0).stdout;
    // With the tools that read large results.
    let names = listed.lines().skip(1).map(|line| line.split_whitespace().next().unwrap());
    assert!(
        names.eq(["calculator", "get_from_working_memory", "result_jsonpath", "result_search", "result_slice"]),
        "{listed}"
    );
    let shown = bot.run(up, &["tool", "show", "calculator"]).ends_with(0).stdout;
    assert!(shown.starts_with("Name         calculator\n") && shown.contains("\nInput\n"), "{shown}");
    assert_eq!(bot.run(up, &["tool", "show", "calculator", "-o", "json"]).ends_with(0).json()["name"], "calculator");
    let found = bot.run(up, &["tool", "find", "write", "a", "file", "or", "an", "expression"]).ends_with(0).stdout;
    assert!(found.contains("calculator") && !found.contains("write_file"), "{found}");
    bot.run(up, &["tool", "show", "echo"]).ends_with(3);
    for command in ["history", "rollback"] {
        let ran = bot.run(up, &["tool", command, "calculator"]).ends_with(6);
        assert!(ran.stderr.contains("it needs the role subscriber"), "{}", ran.stderr);
        bot.run(up, &["tool", command, "nonesuch"]).ends_with(3);
    }
    // Two requests with their responses, and none of the other records.
    let own = bot.run(up, &["crumb", "list", "-o", "json", "--limit", "1000"]).ends_with(0).json();
    let mut schemas: Vec<&str> =
        own.as_array().unwrap().iter().map(|record| record["schema_name"].as_str().unwrap()).collect();
    schemas.sort_unstable();
    assert_eq!(schemas, ["tool.request.v1", "tool.request.v1", "tool.response.v1", "tool.response.v1"]);
    for arguments in [
        vec!["crumb", "create", r#"{"title": "x"}"#],
        vec!["agent", "list"],
        vec!["audit"],
        vec!["secret", "list"],
        vec!["bootstrap"],
    ] {
        let ran = bot.run(up, &arguments).ends_with(6);
        assert!(!ran.stderr.is_empty(), "{arguments:?}");
    }
}

/// The shipped tools that write and read records, for a caller without a list.
fn the_tools_of_a_caller_publish_and_reveal_nothing(up: &Running) {
    let free = Key::of(&up.run(&["agent", "new", "free", "--role", "caller"]).ends_with(0));
    let call = |tool: &str, input: Value, status: i32| {
        free.run(up, &["call", tool, &input.to_string(), "-o", "json"]).ends_with(status).json()
    };
    up.run(&["crumb", "create", r#"{"title": "Of the team", "tags": ["team"]}"#]).ends_with(0);
    let code = json!({"name": "mine", "schema_name": "mine.v1", "schema": {}, "code": {"language": "typescript",
        "source": "export async function execute() { return 1; }"}});
    for schema in ["tool.code.v1", "tool.v1", "schema.def.v1", "tool.guide.v1"] {
        let record = json!({"title": "Mine", "schema_name": schema, "tags": ["tool"], "context": code});
        let response = call("breadcrumb-create", record, 4);
        assert_eq!(response["error_code"], "PermissionDenied", "{response}");
        assert!(response["error"].as_str().unwrap().contains("the role caller"), "{response}");
    }
    up.run(&["tool", "show", "mine"]).ends_with(3);
    call("breadcrumb-create", json!({"title": "Own", "tags": ["team"]}), 0);
    let found = call("breadcrumb-search", json!({"tag": "team"}), 0);
    assert_eq!(found["output"]["breadcrumbs"][0]["title"], "Own", "{found}");
    assert_eq!(found["output"]["count"], 1, "{found}");
    let responses = call("breadcrumb-search", json!({"schema_name": "tool.response.v1", "limit": 100}), 0);
    let own = free.run(up, &["crumb", "list", "--schema", "tool.response.v1", "-o", "json"]).ends_with(0).json();
    // Without the response to the search itself.
    assert_eq!(responses["output"]["count"], own.as_array().unwrap().len() - 1, "{responses}");

    // Working memory: the team's entry and the caller's under one key are two.
    let entry = |value: &str| json!({"key": "project/x/plan", "value": value});
    let read = json!({"key": "project/x/plan"});
    up.json(&["call", "save_to_working_memory", &entry("the team's").to_string()]);
    let missing = call("get_from_working_memory", read.clone(), 4);
    assert!(missing["error"].as_str().unwrap().contains("has no entries"), "{missing}");
    call("save_to_working_memory", entry("the caller's"), 0);
    assert!(call("get_from_working_memory", read.clone(), 0)["output"].to_string().contains("the caller's"));
    let of_team = up.json(&["call", "get_from_working_memory", &read.to_string()]);
    assert!(of_team["output"].to_string().contains("the team's"), "{of_team}");
    call("delete_from_working_memory", read.clone(), 0);
    up.run(&["call", "get_from_working_memory", &read.to_string()]).ends_with(0);
    up.run(&["agent", "delete", "free"]).ends_with(0);
}

/// Although its list has neither tool that reads them.
fn a_caller_reads_its_large_results(up: &Running) {
    let long = json!({"message": "walrus ".repeat(12_000)}).to_string();
    let reader = Key::of(&up.run(&["agent", "new", "reader", "--role", "caller", "--tool", "echo"]).ends_with(0));
    let call = |key: &Key, tool: &str, input: &str, status: i32| {
        key.run(up, &["call", tool, input, "--session", "long", "-o", "json"]).ends_with(status).json()
    };
    let output = call(&reader, "echo", &long, 0)["output"].clone();
    assert_eq!(output["type"], "large_result", "{output}");
    let part = json!({"key": format!("{}1", output["part_prefix"].as_str().unwrap())}).to_string();
    let slice = json!({"key": output["key"], "start": 0, "length": 20}).to_string();
    for (tool, input) in [("get_from_working_memory", &part), ("result_slice", &slice)] {
        let read = call(&reader, tool, input, 0)["output"].to_string();
        assert!(read.contains("walrus"), "{tool}: {read}");
        // Another caller does not read them, not even in the same session.
        let other = Key::of(&up.run(&["agent", "new", tool, "--role", "caller", "--tool", "echo"]).ends_with(0));
        assert_eq!(call(&other, tool, input, 4)["error_code"], "ExecutionFailed", "{tool}");
        up.run(&["agent", "delete", tool]).ends_with(0);
    }
    up.run(&["agent", "delete", "reader"]).ends_with(0);
}

/// It cannot open an event stream, so the call itself is queried.
fn an_emitter_gets_its_responses_without_events(up: &Running) {
    let maker = Key::of(&up.run(&["agent", "new", "maker", "--role", "emitter"]).ends_with(0));
    maker.run(up, &["crumb", "watch"]).ends_with(6);
    let ran = maker.run(up, &["call", "calculator", r#"{"expression": "6 * 7"}"#]).ends_with(0);
    assert!(ran.stdout.contains("42"), "{}", ran.stdout);
    // It is not there yet when the call is queried first.
    maker.run(up, &["call", "timer", r#"{"seconds": 0.3}"#]).ends_with(0);
    up.run(&["agent", "delete", "maker"]).ends_with(0);
}

fn agents_are_shown_and_changed(up: &Running, bot: &Key) {
    let list = up.json(&["agent", "list"]);
    let listed = list.as_array().unwrap().iter().find(|agent| agent["name"] == "bot").unwrap();
    assert_eq!((&listed["id"], &listed["roles"]), (&json!(bot.id()), &json!(["caller"])));
    assert_eq!(listed["tools"], json!({"names": ["calculator"], "sources": [], "tags": []}));
    let table = up.run(&["agent", "list"]).ends_with(0).stdout;
    assert_eq!(
        table.lines().next().unwrap().split_whitespace().collect::<Vec<_>>(),
        ["ID", "NAME", "ROLES", "PROFILE", "TOOLS"]
    );
    assert!(table.contains("names calculator"), "{table}");
    let shown = up.run(&["agent", "show", bot.id()]).ends_with(0).stdout;
    assert!(shown.contains("roles    caller") && shown.contains("LAST USED"), "{shown}");
    assert!(up.json(&["agent", "show", "bot"])["tokens"][0]["last_used_at"].is_string());

    let new = ["agent", "new", "typo", "--role", "caller", "--tool", "calculater", "--tool", "echo"];
    let ran = up.run(&new).ends_with(0);
    Key::of(&ran);
    assert!(ran.stderr.contains("there is no tool named calculater"), "{}", ran.stderr);
    let ran = up.run(&["agent", "set", "typo", "--tool", "calculater", "--tool", "echo"]).ends_with(0);
    let warning = "warning: there is no tool named calculater now; did you mean calculator?\n";
    assert_eq!(ran.stderr, warning);
    up.run(&["agent", "delete", "typo"]).ends_with(0);

    let ran = up.run(&["agent", "new", "wasm", "--role", "caller", "--source", "wasm"]).ends_with(0);
    assert!(ran.stderr.contains("no tool has the source wasm now; the sources are native, sandbox"), "{}", ran.stderr);
    up.run(&["agent", "delete", "wasm"]).ends_with(0);
    let ran = up.run(&["agent", "set", "bot", "--source", "sandbox"]).ends_with(0);
    assert_eq!(ran.stdout, "changed the agent bot: roles caller; profile main; tools: sources sandbox\n");
    bot.run(up, &["call", "echo", r#"{"message": "hi"}"#]).ends_with(0);
    assert!(up.json(&["agent", "set", "bot", "--all-tools"]).get("tools").is_none());
    assert_eq!(
        up.json(&["agent", "set", "bot", "--role", "caller,subscriber"])["roles"],
        json!(["subscriber", "caller"])
    );
    bot.run(up, &["crumb", "list", "--schema", "tool.v1"]).ends_with(0);
    for profile in ["subagent", "main"] {
        assert_eq!(up.json(&["agent", "set", "bot", "--profile", profile])["profile"], profile);
    }

    for (arguments, status, says) in [
        (vec!["agent", "show", "nobody"], 3, "no agent has the name or id \"nobody\""),
        (vec!["agent", "set", "bot"], 2, "name what to change"),
        (vec!["agent", "set", "bot", "--all-tools", "--tool", "echo"], 2, "--all-tools"),
        (vec!["agent", "new", "x"], 2, "--role"),
        (vec!["agent", "new", "x", "--role", "king"], 2, "king"),
        (vec!["agent", "new", "bot", "--role", "caller"], 1, "name: is used by another agent of this tenant; choose"),
        (vec!["agent", "new", "x", "--role", "emitter", "--tool", "echo"], 1, "needs the role caller"),
        (vec!["agent", "new", "x", "--role", "caller", "--source", "no where"], 1, "tools.sources[0]"),
        (vec!["agent", "set", "bot", "--source", "natve"], 1, "\"natve\" is not a source; did you mean native?"),
    ] {
        let ran = up.run(&arguments).ends_with(status);
        assert!(ran.stderr.contains(says), "{arguments:?}: {}", ran.stderr);
    }
}

fn tokens_are_listed_and_revoked(up: &Running, bot: &Key) {
    let token = bot.run(up, &["token"]).ends_with(0).stdout.trim().to_owned();
    let listed = bot.run(up, &["token", "list", "--token", &token, "-o", "json"]).ends_with(0).json();
    let tokens = up.json(&["token", "list", "--agent", bot.id()]);
    let ids = |tokens: &Value| -> Vec<String> {
        tokens.as_array().unwrap().iter().map(|token| token["id"].as_str().unwrap().to_owned()).collect()
    };
    // The command of the curator issued none for the bot.
    assert!(ids(&listed).iter().all(|id| ids(&tokens).contains(id)), "{listed}\n{tokens}");
    // A token that `rcrt token` prints is valid for an hour, that of another command for minutes.
    bot.run(up, &["token"]).ends_with(0);
    bot.run(up, &["tool", "list"]).ends_with(0);
    let tokens = up.json(&["token", "list", "--agent", bot.id(), "--limit", "10"]);
    let times = tokens.as_array().unwrap().iter().map(|token| {
        let time = |field: &str| token[field].as_str().unwrap().parse::<DateTime<Utc>>().unwrap();
        (time("expires_at") - time("issued_at")).num_seconds()
    });
    // The end is in whole seconds. A command can make several requests at once, each with a token.
    let times: Vec<i64> = times.collect();
    assert!((299..=300).contains(&times[0]) && times.iter().any(|time| (3599..=3600).contains(time)), "{tokens}");
    let newest = ids(&up.json(&["token", "list", "--agent", bot.id(), "--limit", "1"]))[0].clone();
    up.run(&["token", "revoke", "--jti", &newest]).ends_with(0);
    let wrong = "5f2d1c3e-0000-4000-8000-000000000001";
    let refused = up.run(&["token", "revoke", "--jti", wrong]).ends_with(3);
    assert!(refused.stderr.contains(&format!("no unexpired token with id {wrong} is listed")), "{}", refused.stderr);
    let advance = up.run(&["token", "revoke", "--jti", wrong, "--agent", bot.id()]).ends_with(0);
    assert!(advance.stdout.contains("will be refused"), "{}", advance.stdout);
    let row = up.json(&["token", "list", "--agent", bot.id(), "--limit", "1"])[0].clone();
    assert_eq!((&row["id"], &row["revoked"], &row["agent_name"]), (&json!(newest), &json!(true), &json!("bot")));
    // Options name an agent by its name too.
    let of = |command: &[&str], agent: &str| up.json(&[command, &["--agent", agent][..]].concat());
    for command in [&["calls"][..], &["token", "list"]] {
        let by_name = of(command, "bot");
        assert_eq!(by_name, of(command, bot.id()), "{command:?}");
        assert!(!by_name.as_array().unwrap().is_empty(), "{command:?}");
    }
    for command in [&["calls"][..], &["token", "list"], &["audit"], &["audit", "egress"]] {
        let ran = up.run(&[command, &["--agent", "nobody"][..]].concat()).ends_with(3);
        assert!(ran.stderr.contains("no agent has the name or id \"nobody\""), "{command:?}: {}", ran.stderr);
    }
    let table = up.run(&["token", "list"]).ends_with(0).stdout;
    assert!(table.contains(&newest) && table.contains("revoked") && table.contains("first"), "{table}");
}

fn a_grant_opens_the_short_view(up: &Running) {
    let reader = Key::of(&up.run(&["agent", "new", "granted", "--role", "emitter"]).ends_with(0));
    let record = json!({"title": "Private", "visibility": "private", "context": {"n": 1}}).to_string();
    let id = up.json(&["crumb", "create", &record])["id"].as_str().unwrap().to_owned();
    reader.run(up, &["crumb", "get", &id]).ends_with(3);
    up.post("/acl/grant", &json!({"breadcrumb_id": id, "grantee_agent_id": reader.id(), "actions": ["read_context"]}));
    assert_eq!(reader.run(up, &["crumb", "get", &id]).ends_with(0).json()["context"]["n"], 1);
    reader.run(up, &["crumb", "get", &id, "--full"]).ends_with(3);
    up.run(&["agent", "delete", "granted"]).ends_with(0);
}

fn a_key_is_replaced(up: &Running, old: &Key) -> Key {
    let token = old.run(up, &["token"]).ends_with(0).stdout.trim().to_owned();
    let new = Key::of(&up.run(&["agent", "rotate-key", "bot"]).ends_with(0));
    old.run(up, &["token"]).ends_with(6);
    new.run(up, &["token"]).ends_with(0);
    up.run(&["crumb", "list", "--token", &token]).ends_with(0);
    let newest = Key::of(&up.run(&["agent", "rotate-key", "bot", "--revoke-tokens"]).ends_with(0));
    let refused = up.run(&["crumb", "list", "--token", &token]).ends_with(6).stderr;
    let fix = "the token was revoked; get a new token with the agent's key: set RCRT_OWNER_ID";
    assert!(refused.contains(fix), "{refused}");
    newest
}

fn the_audit_log_has_all_of_it(up: &Running, bot: &Key) {
    let entries = up.json(&["audit", "--action", "agent", "--subject", bot.id()]);
    let actions: Vec<&str> =
        entries.as_array().unwrap().iter().map(|entry| entry["action"].as_str().unwrap()).collect();
    let expected = [
        "agent.deleted",
        "agent.key_rotated",
        "agent.key_rotated",
        "agent.changed",
        "agent.changed",
        "agent.changed",
        "agent.changed",
        "agent.changed",
        "agent.created",
    ];
    assert_eq!(actions, expected);
    let table = up.run(&["audit", "--action", "agent.changed"]).ends_with(0).stdout;
    assert!(table.contains("first") && table.contains("tools: names calculator → sources sandbox"), "{table}");
    let tools = up.json(&["audit", "--action", "tool.created", "--limit", "1000"]);
    assert!(tools.as_array().unwrap().iter().any(|entry| entry["subject_name"] == "calculator"), "{tools}");
    assert_eq!(up.json(&["audit", "--since", "2999-01-01T00:00:00Z"]), json!([]));
    up.run(&["audit", "egress"]).ends_with(0);
    up.run(&["audit", "--limit", "0"]).ends_with(2);
}
