//! What `bash` does.

use rcrt_breadcrumb::ErrorCode;
use serde_json::json;

use crate::harness::{Programs, failed};

pub async fn a_command_has_two_streams_and_an_exit_code(tools: &Programs) {
    let output = tools.tried("pwd; echo words >&2; echo text > new.txt; cat new.txt; exit 3").await;
    assert_eq!(output, json!({"exit_code": 3, "stdout": "/work\ntext\n", "stderr": "words\n"}));
}

pub async fn pipes_loops_and_the_usual_programs_work(tools: &Programs) {
    assert_eq!(tools.bash("for n in 3 1 2; do echo $n; done | sort | tr '\\n' ' '").await, "1 2 3 ");
    assert_eq!(tools.bash("cat <(echo one) <(echo two)").await, "one\ntwo\n");
    assert_eq!(
        tools.bash("echo hidden > f; grep -c hid f; sed -i s/hidden/seen/ f; cat f; wc -c < f").await,
        "1\nseen\n5\n"
    );
    assert_eq!(tools.bash("echo $((6*7)) > /tmp/x; cat /tmp/x; date -u -d @0 +%Y").await, "42\n1970\n");
    // What one command leaves in its private folders is not visible to the next.
    assert_eq!(tools.bash("ls -A /tmp /dev/shm | grep -c x || true").await, "0\n");
}

pub async fn the_environment_is_clean(tools: &Programs) {
    let names = tools.bash("env | cut -d= -f1 | sort | tr '\\n' ' '").await;
    assert_eq!(names, "HOME LANG LOGNAME PATH PWD SHELL SHLVL TERM TMPDIR USER _ ");
    assert_eq!(tools.bash("id -u; id -g").await, "1000\n1000\n");
}

pub async fn invalid_command_text_is_refused(tools: &Programs) {
    let failure =
        failed(tools.result("bash", json!({"command": "x".repeat(200_000)})).await, ErrorCode::InvalidArguments);
    assert!(failure.message.starts_with("command: is 200000 bytes long"), "{failure}");
    let failure = failed(tools.result("bash", json!({"command": "echo a\0b"})).await, ErrorCode::InvalidArguments);
    assert!(failure.message.contains("NUL"), "{failure}");
    for seconds in [json!(0), json!(-1), json!("5")] {
        let input = json!({"command": "true", "timeout_seconds": seconds});
        failed(tools.result("bash", input).await, ErrorCode::InvalidArguments);
    }
    // A command that looks like an option is still a command.
    assert_eq!(tools.tried("--version").await["exit_code"], 127);
}

pub async fn output_of_a_killed_command_is_reported(tools: &Programs) {
    let input = json!({"command": "echo trouble >&2; echo begun; sleep 600", "timeout_seconds": 1});
    let failure = tools.timed_out_after_output(|| tools.call("bash", input.clone())).await;
    assert!(failure.is_retryable);
    assert_eq!(failure.message, "it ran longer than 1 s and was killed");
    let details = failure.details.unwrap();
    assert_eq!(details, json!({"limit": "timeout_ms", "allowed": 1000, "stdout": "begun\n", "stderr": "trouble\n"}));
}

/// The runner truncates results above the caller's limit if the request has no session. No part of
/// this result may be affected by that.
pub async fn long_output_keeps_both_streams_within_the_callers_limit(tools: &Programs) {
    for (command, takes) in [
        ("seq 100000; echo trouble >&2; exit 3", None),
        ("seq 100000; echo trouble >&2; exit 3", Some(1_000)),
        ("seq 400000; echo trouble >&2; exit 3", Some(200_000)),
        ("seq 100000 >&2; echo trouble; exit 3", None),
        ("seq 100000; seq 100000 >&2; exit 3", None),
        ("head -c 800000 /dev/zero | tr '\\0' '\\1'; echo trouble >&2; exit 3", Some(4_000_000)),
        ("head -c 800000 /dev/zero | tr '\\0' '\"'; echo trouble >&2; exit 3", None),
    ] {
        let mut call = tools.call("bash", json!({"command": command}));
        call.request.max_result_chars = takes;
        let output = tools.execute(call).await.result.unwrap();
        let json = output.to_string();
        let (count, most) = (json.chars().count() as u64, takes.unwrap_or(64_000));
        assert!(count <= most && json.len() < 3_900_000, "{command}: {count}");
        assert!(count >= most.min(500_000) / 10 * 9, "{command}: {count}");
        assert_eq!(output["exit_code"], 3);
        let [stdout, stderr] = ["stdout", "stderr"].map(|name| output[name].as_str().unwrap());
        let (long, other) = if stdout.len() >= stderr.len() { (stdout, stderr) } else { (stderr, stdout) };
        assert!(long.contains("\n[… ") && long.contains(" omitted …]\n"), "{command}");
        assert!(other == "trouble\n" || other == long, "{command}: {other}");
        assert!(!command.starts_with("seq") || long.starts_with("1\n2\n") && long.ends_with("00000\n"), "{command}");
    }
    // A session stores all of it.
    let mut call = tools.call("bash", json!({"command": "seq 100000; echo trouble >&2"}));
    call.request.session = Some("s1".into());
    let output = tools.execute(call).await.result.unwrap();
    assert_eq!(output["stdout"].as_str().unwrap().lines().count(), 100_000);
}

pub async fn signals_are_reported_as_in_a_shell(tools: &Programs) {
    assert_eq!(tools.tried("kill -TERM $$").await["exit_code"], 143);
    assert_eq!(tools.tried("kill -KILL $$").await["exit_code"], 137);
    assert_eq!(tools.tried("exec 2>/dev/null; bash -c 'kill -SEGV $$'; echo $?").await["stdout"], "139\n");
}

pub async fn what_runs_in_the_background_does_not_delay_the_end(tools: &Programs) {
    // It holds the streams open.
    assert_eq!(tools.bash("sleep 600 & echo begun").await, "begun\n");
}
