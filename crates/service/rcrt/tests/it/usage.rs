//! Invalid command lines, help, and commands without a server.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::time::{Duration, Instant};

use crate::program::{Ran, rcrt, run};

#[test]
fn an_invalid_command_line_exits_with_2_and_names_the_problem() {
    for (arguments, says) in [
        (vec!["upp"], "upp"),
        (vec!["call"], "<TOOL>"),
        (vec!["call", "echo", "{not json", "--token", "x"], "the input is not valid JSON"),
        (vec!["call", "echo", "{}", "--output", "xml"], "xml"),
        (vec!["crumb", "get", "no-uuid"], "is not an id; expected a UUID such as"),
        (vec!["token", "revoke", "--jti", "nope"], "is not an id; expected a UUID such as"),
        (vec!["crumb", "list", "--match", "$.a:like:x"], "like"),
        (vec!["crumb", "list", "--limit", "0", "--token", "x"], "limit"),
        (
            vec!["crumb", "create", "{\"titel\": \"x\"}", "--token", "x"],
            "the record is not valid: titel: is not a known field; did you mean title?",
        ),
        (vec!["crumb", "create", "{\"title\": 5}", "--token", "x"], "title: must be a string, not a number"),
        (vec!["up", "--auth", "open", "--listen", "0.0.0.0:0"], "--auth open"),
        (vec!["up", "--auth", "open", "--allow-host", "http://rcrt"], "--allow-host"),
        (vec!["up", "--compat", "other"], "[possible values: rcrt]"),
        (vec!["up", "--listen", "nowhere"], "nowhere"),
        (vec!["up", "--embeddings", "locale"], "local, off, or the URL of an endpoint"),
        (vec!["up", "--embeddings", "http://127.0.0.1:1/v1"], "--embedding-model"),
        (vec!["server", "--embeddings", "local", "--embedding-model", "small"], "--embeddings"),
        (vec!["up", "--listen", "localhost"], "such as 127.0.0.1:8081"),
        (vec!["tool", "validate", "nowhere"], "there is no file or folder nowhere"),
        (vec!["up", "--database-url", "mysql://me:s3cr3t@db/x"], "mysql://"),
        (vec!["server", "--database-url", "nothing"], "--database-url"),
        (vec!["cell", "add", "east", "mysql://me:s3cr3t@db/x"], "mysql:// is not a Postgres URL"),
        (vec!["bootstrap", "no-such-folder"], "no-such-folder"),
        (vec!["secret", "set", "bad\"name", "--token", "x"], "name"),
        (vec!["tool", "new", "1st"], "1st"),
        (vec!["runner", "--timezone", "Mars/Olympus"], "Mars/Olympus"),
        (vec!["runner", "--max-result-chars", "10"], "from 1000 to 4000000"),
        (vec!["runner", "--min-free-disk-mb", "1GB"], "whole number of MB"),
        (
            vec!["runner", "--packages-set-mb", "9", "--packages-total-mb", "8", "--token", "x"],
            "--packages-set-mb 9 is more than --packages-total-mb 8",
        ),
        (vec!["runner", "--searxng-url", "search.example.com"], "https://"),
        (vec!["runner", "--search", "searxng", "--token", "x"], "--searxng-url"),
        (vec!["runner", "--search", "google"], "[possible values: brave, searxng]"),
        (vec!["up", "--enable-tool", "bosh"], "bosh"),
        (vec!["up", "--enable-tool", "bash", "--disable-tool", "bash"], "name it in one of them"),
        (vec!["runner", "--allow-network", "read_file", "--token", "x"], "bash, execute_python_script"),
        (vec!["call", "echo", "--deadline", "soon"], "such as 2.5"),
        (vec!["call", "echo", r#"{"n": [18446744073709551616]}"#, "--token", "x"], "n[0] is the number"),
        (vec!["up", "--keep-calls", "1m"], "must be at least 1h"),
        // Only servers delete what is past its retention.
        (vec!["runner", "--keep-calls", "30d"], "--keep-calls"),
        (vec!["runner", "--archive", "/tmp"], "--archive"),
        (vec!["up", "--keep-versions", "always"], "12h, 30d, 4w, or forever"),
        (vec!["up", "--keep-versions", "2d"], "--keep-versions 2d is less than --keep-events 7d"),
        (vec!["server", "--keep-events", "forever"], "a number and a unit"),
        (vec!["call", "echo", "--deadline", "90000"], "86400"),
        (vec!["call", "echo", "--max-result-chars", "10"], "1000"),
        (vec!["bench", "--rate", "0"], "--rate: the rate must be above 0"),
        (vec!["bench", "--rate", "NaN"], "--rate: the rate must be above 0"),
        (vec!["bench", "--rate", "0.1", "--warm-up", "1", "--duration", "2"], "make it longer"),
        (vec!["bench", "--in-flight", "0"], "--in-flight"),
        (vec!["bench", "--duration", "0"], "--duration"),
        (vec!["bench", "--duration", "-1"], "must be 0 or more seconds"),
        (vec!["bench", "--rate", "-5"], "--rate"),
        (vec!["bench", "--json", "x", "--svg", "x"], "the same file"),
        (vec!["bench", "--input", "@/no/such/file"], "/no/such/file cannot be read"),
        (vec!["bench", "--duration", "soon"], "such as 2.5"),
        (vec!["bench", "--warm-up=-1"], "0 or more seconds"),
        (vec!["bench", "--method", "window"], "[possible values: events, invoke]"),
        (vec!["bench", "--input", "{", "--token", "x"], "--input is not valid JSON"),
        (vec!["bench", "--json", "no/such/folder.json", "--token", "x"], "no/such/folder.json cannot be written"),
        (vec!["tool", "list", "--format", "xml"], "openai"),
        (vec!["tool", "list", "--profile", "boss"], "a2asynthesis"),
        (vec!["token", "--profile", "boss"], "a2asynthesis"),
        (vec!["runner", "--sandbox", "lax"], "[possible values: strict, minimal]"),
        (vec!["up", "--sandbox", "none"], "[possible values: strict, minimal]"),
        (vec!["runner", "--isolation", "call"], "[possible values: shared, process]"),
        (vec!["token", "--agent", "x"], "--role"),
        (vec!["runner", "--allow-private-host", "a b"], "a b"),
        (vec!["up", "--allow-private-host", "169.254.169.254"], "169.254.169.254 is a non-public address"),
        (vec!["server", "--allow-private-host", "ollama=224.0.0.1:80"], "cannot be allowed"),
        (vec!["up", "--max-calls", "0"], "at least 1"),
        (vec!["runner", "--max-calls-per-tool", "0"], "at least 1"),
        (vec!["up", "--workdir", "/dev/null"], "--workdir: /dev/null is not a folder"),
        (vec!["runner", "--workdir", "/dev/null/work", "--token", "x"], "because /dev/null is not a folder"),
        (vec!["crumb", "list", "--log", "a=b=c", "--token", "x"], "--log"),
        (vec!["crumb", "list", "--server", "ftp://host", "--token", "x"], "ftp://host"),
        (vec!["crumb", "list", "--server", "127.0.0.1:8081", "--token", "x"], "did you mean http://127.0.0.1:8081?"),
        (vec!["crumb", "list", "--server", "localhost:8081", "--token", "x"], "did you mean http://localhost:8081?"),
        (vec!["crumb", "list", "--token", " "], "the token in --token or RCRT_TOKEN is empty"),
        (vec!["call", "", "--token", "x"], "TOOL: must not be empty"),
        (vec!["call", "echo", "--session", "", "--token", "x"], "--session: must not be empty"),
        (vec!["crumb", "list", "--agent-key", "x"], "--owner-id"),
    ] {
        let ran = run(&arguments);
        assert_eq!(ran.status, 2, "{arguments:?} prints {:?}", ran.stderr);
        assert!(ran.stderr.contains(says), "{arguments:?} prints {:?}, without {says:?}", ran.stderr);
        assert_eq!(ran.stdout, "", "{arguments:?}");
    }
}

#[test]
fn man_writes_a_page_for_each_command() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("man1");
    run(&["man", pages.to_str().unwrap()]).ends_with(0);
    for (page, says) in
        [("rcrt.1", "completions"), ("rcrt-runner.1", "RCRT_METRICS_LISTEN"), ("rcrt-tool-new.1", "template")]
    {
        let text = std::fs::read_to_string(pages.join(page)).unwrap();
        assert!(text.contains(".TH ") && text.contains(says), "{page} has not {says}: {text}");
    }
    let refused = run(&["man", "/dev/null/man1"]).ends_with(1).stderr;
    assert!(refused.contains("/dev/null/man1"), "{refused}");
}

#[test]
fn help_names_the_exit_statuses_and_every_subcommand() {
    let help = run(&["--help"]).ends_with(0).stdout;
    for word in [
        "up",
        "server",
        "runner",
        "bootstrap",
        "call",
        "tool",
        "crumb",
        "secret",
        "token",
        "bench",
        "doctor",
        "health",
        "migrate",
        "completions",
        "man",
        "Exit status",
        "RCRT_DATA",
        "RCRT_OUTPUT",
    ] {
        assert!(help.contains(word), "{word} is not in {help}");
    }
    assert!(!help.contains("sandbox-worker"), "{help}");
    let help = run(&["tool", "new", "--help"]).ends_with(0).stdout;
    assert!(help.contains("then any of letters, digits, `.`, `_` and `-`"), "{help}");
    for subcommand in ["up", "call", "bench", "bootstrap"] {
        assert!(run(&[subcommand, "--help"]).ends_with(0).stdout.contains("Examples:"), "{subcommand}");
    }
}

#[test]
fn help_does_not_show_secrets_of_the_environment() {
    let mut command = rcrt();
    command.args(["up", "--help"]).env("RCRT_TOKEN", "s3cr3t").env("DATABASE_URL", "s3cr3t");
    let ran = Ran::of(command.output().unwrap()).ends_with(0);
    assert!(!ran.stdout.contains("s3cr3t"), "{}", ran.stdout);
}

#[test]
fn completions_exist_for_each_shell() {
    for shell in ["bash", "zsh", "fish"] {
        assert!(run(&["completions", shell]).ends_with(0).stdout.contains("rcrt"), "{shell}");
    }
}

#[test]
fn without_a_server_the_status_is_5_and_without_a_token_6() {
    let ran = run(&["crumb", "list", "--server", "http://127.0.0.1:1", "--token", "x"]).ends_with(5);
    assert!(ran.stderr.starts_with("rcrt: http://127.0.0.1:1/ cannot be reached: "), "{}", ran.stderr);
    assert!(ran.stderr.contains("is the server running? (`rcrt up` starts one)"), "{}", ran.stderr);
    let ran = run(&["crumb", "list", "--server", "http://127.0.0.1:1"]).ends_with(6);
    assert!(ran.stderr.contains("token"), "{}", ran.stderr);
}

#[test]
fn the_folders_token_is_not_sent_to_another_machine() {
    let folder = tempfile::TempDir::new().unwrap();
    std::fs::write(folder.path().join("token"), "secret").unwrap();
    let data = folder.path().to_str().unwrap();
    let ran = run(&["crumb", "list", "--data", data, "--server", "http://192.0.2.1"]).ends_with(6);
    assert!(ran.stderr.contains("--token"), "{}", ran.stderr);
    // The server of the folder can listen on an address that other machines reach.
    std::fs::write(folder.path().join("address"), "http://192.0.2.1:1\n").unwrap();
    let mut call = rcrt();
    call.args(["call", "echo", "--timeout", "1", "--data", data]).env("NO_PROXY", "*");
    let ran = Ran::of(call.output().unwrap()).ends_with(5);
    assert!(ran.stderr.contains("http://192.0.2.1:1/ cannot be reached"), "{}", ran.stderr);
    run(&["crumb", "list", "--data", data, "--server", "http://192.0.2.1"]).ends_with(6);
}

#[test]
fn with_json_output_an_error_is_one_line_of_json() {
    for (arguments, exit, code, says) in [
        (vec!["tool", "lst"], 2, "usage", "lst"),
        (vec!["crumb", "list", "--limit", "0", "--token", "x"], 2, "usage", "limit"),
        (vec!["crumb", "list", "--server", "http://127.0.0.1:1", "--token", "x"], 5, "unreachable", "127.0.0.1:1"),
        (vec!["crumb", "list", "--server", "http://127.0.0.1:1"], 6, "refused", "token"),
    ] {
        let mut arguments = arguments;
        arguments.extend(["-o", "json"]);
        let ran = run(&arguments).ends_with(exit);
        let error: serde_json::Value = serde_json::from_str(&ran.stderr).unwrap();
        assert_eq!((&error["code"], &error["exit"]), (&code.into(), &exit.into()), "{error}");
        assert!(error["error"].as_str().unwrap().contains(says), "{error}");
        assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
    }
}

/// Also while the server accepts connections and never responds, as while its database hangs.
#[test]
fn a_call_without_a_server_ends_at_its_timeout() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = format!("http://{}", silent.local_addr().unwrap());
    let down = r#"{"code": "unavailable", "status": 503, "detail": "the store cannot be reached now; try again"}"#;
    let down = server_with("503 Service Unavailable", "application/problem+json", down.into());
    for (url, says) in [
        ("http://127.0.0.1:1", "cannot be reached: "),
        (&*silent, "cannot be reached: no response in time"),
        (&*down, "refuses the request for now: the store cannot be reached now"),
    ] {
        let begun = Instant::now();
        let ran = run(&["call", "echo", "--timeout", "1", "--server", url, "--token", "x"]).ends_with(5);
        assert!(ran.stderr.contains(&format!("{url}/ {says}")), "{}", ran.stderr);
        assert!(begun.elapsed() < Duration::from_mins(1), "one attempt alone can take a minute");
    }
}

/// The URL of a server that gives every request this response.
fn server_with(status: &'static str, media_type: &'static str, body: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
            let head = format!("HTTP/1.1 {status}\r\ncontent-type: {media_type}\r\nconnection: close");
            let _ = write!(stream, "{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        }
    });
    url
}

#[test]
fn an_error_of_another_server_names_its_url() {
    let url = server_with("404 Not Found", "text/html", "<p>nothing here</p>".into());
    let ran = run(&["crumb", "list", "--server", &url, "--token", "x"]).ends_with(1);
    let says = format!("rcrt: {url}/: 404 Not Found from a server that is not an RCRT server; check the address");
    assert_eq!(ran.stderr.trim_end(), says);
}

/// A server that is about to stop answers, so it is not reported as one that does not run.
#[test]
fn a_refusal_for_now_is_not_reported_as_a_missing_server() {
    let detail = "this server is about to stop and accepts no new work";
    let body = format!(r#"{{"code": "draining", "status": 503, "detail": "{detail}"}}"#);
    let url = server_with("503 Service Unavailable", "application/problem+json", body);
    let ran = run(&["crumb", "list", "--server", &url, "--token", "x"]).ends_with(5);
    assert!(ran.stderr.contains(&format!("{url}/ refuses the request for now: {detail}")), "{}", ran.stderr);
    assert!(!ran.stderr.contains("is the server running"), "{}", ran.stderr);
}
