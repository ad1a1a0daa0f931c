//! What `execute_python_script` does.

use rcrt_breadcrumb::ErrorCode;
use serde_json::{Value, json};

use crate::harness::{Programs, failed, limited};

pub async fn script_output_is_returned(tools: &Programs) {
    let script =
        "import sys, json, math\nprint(json.dumps({'root': math.isqrt(144)}))\nprint('aside', file=sys.stderr)";
    assert_eq!(tools.printed(script).await, "{\"root\": 12}\n");
    assert_eq!(tools.printed("print('grüße, 世界 😀')").await, "grüße, 世界 😀\n");
    assert_eq!(tools.printed("").await, "");
}

pub async fn long_output_without_a_session_keeps_beginning_and_end(tools: &Programs) {
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

pub async fn input_is_available_under_both_names(tools: &Programs) {
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

pub async fn standard_error_explains_a_failure(tools: &Programs) {
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

pub async fn the_response_says_which_python_ran(tools: &Programs) {
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
    }
}

pub async fn threads_processes_and_local_servers_work(tools: &Programs) {
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

pub async fn a_script_has_its_own_timeout(tools: &Programs) {
    let script = "print('begun')\nimport time; time.sleep(600)";
    let call = || tools.call("execute_python_script", json!({"script": script, "timeout_seconds": 1.5}));
    let failure = tools.timed_out_after_output(call).await;
    assert_eq!(failure.message, "it ran longer than 1.5 s and was killed");
    assert_eq!(failure.details.unwrap()["stdout"], "begun\n");
}

pub async fn a_long_script_runs_and_one_that_is_too_long_is_refused(tools: &Programs) {
    let failure = failed(tools.python(&"#".repeat(1024 * 1024 + 1)).await, ErrorCode::InvalidArguments);
    assert!(failure.message.starts_with("script: "), "{failure}");
    assert_eq!(tools.printed(&format!("{}\nprint('long')", "#".repeat(1_000_000))).await, "long\n");
}

pub async fn a_script_starts_in_an_empty_folder(tools: &Programs) {
    let script = "import os\nprint(os.getcwd(), sorted(os.listdir('.')), os.path.exists('/work/left.txt'))\n\
                  open('left.txt', 'w').write('x')\nopen('module.py', 'w').write('VALUE = 7')\nimport module\n\
                  print(module.VALUE)";
    for _ in 0..2 {
        assert_eq!(tools.printed(script).await, "/tmp [] False\n7\n");
    }
}

pub async fn processor_time_is_bounded(tools: &Programs) {
    let call = tools.call("execute_python_script", json!({"script": "while True: pass"}));
    let output = tools.execute(limited(call, |limits| limits.cpu_ms = Some(1_000))).await;
    let failure = failed(output.result, ErrorCode::ResourceExhausted);
    assert_eq!(failure.message, "it used more than 1000 ms of processor time and was killed");
    assert_eq!(failure.details.unwrap()["limit"], "cpu_ms");
}

pub async fn no_other_machine_is_reached(tools: &Programs) {
    // An address for documentation, which nobody has, and a name.
    let script = "import socket\nfor target in (('192.0.2.1', 80), ('example.com', 80)):\n    try:\n        \
                  socket.create_connection(target, 5)\n        print('reached')\n    except OSError: print('not reached')";
    assert_eq!(tools.printed(script).await, "not reached\nnot reached\n");
}
