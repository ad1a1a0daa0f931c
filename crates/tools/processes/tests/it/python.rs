//! Tests of the uses of `execute_python_script`.

use std::fs;

use rcrt_breadcrumb::ErrorCode;
use serde_json::{Value, json};

use crate::fixture::{Tools, failed, needs_the_jail};

#[tokio::test]
async fn script_output_is_returned() {
    needs_the_jail!();
    let tools = Tools::new().await;
    let script =
        "import sys, json, math\nprint(json.dumps({'root': math.isqrt(144)}))\nprint('aside', file=sys.stderr)";
    assert_eq!(tools.printed(script).await, "{\"root\": 12}\n");
    assert_eq!(tools.printed("print('grüße, 世界 😀')").await, "grüße, 世界 😀\n");
    assert_eq!(tools.printed("").await, "");
}

#[tokio::test]
async fn long_output_without_a_session_keeps_beginning_and_end() {
    needs_the_jail!();
    let tools = Tools::new().await;
    let script = "for n in range(1, 100001): print(n)";
    let output = tools.printed(script).await;
    assert!(output.chars().count() <= 64_000 && output.len() > 60_000, "{}", output.len());
    assert!(output.starts_with("1\n2\n") && output.ends_with("\n100000\n"));
    assert!(output.contains(" characters omitted …]\n"));
    let mut call = tools.call("execute_python_script", json!({"script": script}));
    call.request.session = Some("s1".into());
    let output = tools.execute(call).await.result.unwrap();
    assert_eq!(output.as_str().unwrap().lines().count(), 100_000);
}

#[tokio::test]
async fn input_is_available_under_both_names() {
    needs_the_jail!();
    let tools = Tools::new().await;
    let script = "import os, json\nboth = {os.environ['RCRT_INPUT'], os.environ['ROCKBOT_INPUT']}\n\
                  assert len(both) == 1\nprint(json.loads(both.pop())['a'])";
    let with = |data: Value| json!({"script": script, "input_data": data});
    let answer = tools.result("execute_python_script", with(json!({"a": [1, "ü"]}))).await.unwrap();
    assert_eq!(answer, "[1, 'ü']\n");
    // A string is passed unchanged.
    assert_eq!(tools.result("execute_python_script", with(json!("{\"a\": 7}"))).await.unwrap(), "7\n");
    assert_eq!(tools.printed("import os; print('RCRT_INPUT' in os.environ)").await, "False\n");
    let failure = failed(
        tools.result("execute_python_script", with(json!("x".repeat(140_000)))).await,
        ErrorCode::InvalidArguments,
    );
    assert!(failure.message.starts_with("input_data: ") && failure.message.contains("write it to a file"), "{failure}");
}

#[tokio::test]
async fn standard_error_explains_a_failure() {
    needs_the_jail!();
    let tools = Tools::new().await;
    let failure = failed(tools.python("print('so far')\nprices = {}\nprices['tea']").await, ErrorCode::ExecutionFailed);
    assert!(!failure.is_retryable);
    let message = &failure.message;
    assert!(message.starts_with("the script ended with exit code 1 and wrote:\nTraceback"), "{message}");
    assert!(message.contains("line 3") && message.contains("KeyError: 'tea'"), "{message}");
    let details = failure.details.unwrap();
    assert_eq!((&details["exit_code"], &details["stdout"]), (&json!(1), &json!("so far\n")));
    let failure = failed(tools.python("raise SystemExit(3)").await, ErrorCode::ExecutionFailed);
    assert_eq!(failure.message, "the script ended with exit code 3 and wrote nothing to standard error");
    let failure = failed(tools.python("print(").await, ErrorCode::ExecutionFailed);
    assert!(failure.message.contains("SyntaxError"), "{failure}");
}

#[tokio::test]
async fn files_persist_only_if_requested() {
    needs_the_jail!();
    let tools = Tools::new().await;
    tools.bash("echo 21 > number.txt").await;
    let script = "import os\nprint(os.getcwd(), sorted(os.listdir('.')), os.path.exists('/work/number.txt'))\n\
                  open('left.txt', 'w').write('x')\nopen('module.py', 'w').write('VALUE = 7')\nimport module\n\
                  print(module.VALUE)";
    for _ in 0..2 {
        assert_eq!(tools.printed(script).await, "/tmp [] False\n7\n");
    }
    let names: Vec<_> = fs::read_dir(tools.work()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["number.txt"]);
}

#[tokio::test]
async fn the_response_says_which_python_ran() {
    needs_the_jail!();
    let tools = Tools::new().await;
    let script = "import platform; print(platform.python_version())";
    for (script, is_good) in [(script.to_owned(), true), (format!("{script}; raise SystemExit(1)"), false)] {
        let output = tools.execute(tools.call("execute_python_script", json!({"script": script}))).await;
        assert_eq!(output.result.is_ok(), is_good);
        let version = output.metadata["python"].as_str().unwrap().to_owned();
        let notice = format!("scripts run with Python {version} here, because Python 3.12 was not found");
        let wanted = (!version.starts_with("3.12.")).then_some(notice);
        assert_eq!(output.metadata.get("notice"), wanted.map(Value::from).as_ref());
        let printed = match output.result {
            Ok(text) => text,
            Err(failure) => failure.details.unwrap()["stdout"].clone(),
        };
        assert_eq!(printed, format!("{version}\n"));
        let is_there = |name: &str| {
            let ran = std::process::Command::new(name).args(["-c", "import json, venv"]).output();
            ran.is_ok_and(|output| output.status.success())
        };
        assert_eq!(
            version.starts_with("3.12."),
            is_there("python3.12") || is_there("/usr/bin/python3.12"),
            "{version}"
        );
    }
}

#[tokio::test]
async fn script_with_keep_files_uses_the_working_folder() {
    needs_the_jail!();
    let tools = Tools::new().await;
    tools.bash("echo 'def twice(x): return 2 * x' > doubling.py; echo 21 > number.txt").await;
    let script = "import doubling\nprint(doubling.twice(int(open('number.txt').read())))\nopen('out/../result.txt', 'w').write('kept')";
    fs::create_dir(tools.work().join("out")).unwrap();
    let input = json!({"script": script, "keep_files": true});
    assert_eq!(tools.result("execute_python_script", input).await.unwrap(), "42\n");
    assert_eq!(fs::read_to_string(tools.work().join("result.txt")).unwrap(), "kept");
    let mut names: Vec<_> = fs::read_dir(tools.work()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["doubling.py", "number.txt", "out", "result.txt"]);
}

#[tokio::test]
async fn threads_processes_and_local_servers_work() {
    needs_the_jail!();
    let tools = Tools::new().await;
    let script = r"
import multiprocessing, subprocess, threading, http.server, urllib.request
def square(n): return n * n
if __name__ == '__main__':
    with multiprocessing.get_context('fork').Pool(3) as pool:
        print(pool.map(square, range(4)))
    print(subprocess.run(['echo', 'child'], capture_output=True, text=True).stdout, end='')
    server = http.server.HTTPServer(('127.0.0.1', 0), http.server.SimpleHTTPRequestHandler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(urllib.request.urlopen('http://127.0.0.1:%d/' % server.server_port).status)
";
    assert_eq!(tools.printed(script).await, "[0, 1, 4, 9]\nchild\n200\n");
}

#[tokio::test]
async fn script_has_its_own_timeout() {
    needs_the_jail!();
    let tools = Tools::new().await;
    let script = "print('begun')\nimport time; time.sleep(600)";
    let call = || tools.call("execute_python_script", json!({"script": script, "timeout_seconds": 1.5}));
    let failure = tools.timed_out_after_output(call).await;
    assert_eq!(failure.message, "it ran longer than 1.5 s and was killed");
    assert_eq!(failure.details.unwrap()["stdout"], "begun\n");
}

#[tokio::test]
async fn a_script_that_is_too_long_is_refused() {
    needs_the_jail!();
    let tools = Tools::new().await;
    let failure = failed(tools.python(&"#".repeat(1024 * 1024 + 1)).await, ErrorCode::InvalidArguments);
    assert!(failure.message.starts_with("script: "), "{failure}");
    assert_eq!(tools.printed(&format!("{}\nprint('long')", "#".repeat(1_000_000))).await, "long\n");
}

#[tokio::test]
async fn a_script_has_half_a_processor() {
    needs_the_jail!();
    let locations = rcrt_jail::cgroup::Cgroups::open().0.locations();
    if !locations.iter().any(|location| location.controllers.contains(&"cpu")) {
        // Only control groups enforce a processor share.
        return;
    }
    let tools = Tools::new().await;
    let script = "import time\nbegun = time.perf_counter()\nwhile time.perf_counter() - begun < 2: pass\n\
                  print(time.process_time() / (time.perf_counter() - begun))";
    let share: f64 = tools.printed(script).await.trim().parse().unwrap();
    assert!(share < 0.65, "{share}");
}
