//! Clocks return whole milliseconds, unless the tool has the permission for finer ones.

use rcrt_sandbox::Isolation;
use serde_json::{Value, json};

use crate::fixture::{block_on, function, invocation, run_in, shared, start};

/// Every clock, with how many of its times were not whole milliseconds.
const CLOCKS: &str = "
    const clocks = {
        now: () => performance.now(),
        origin: () => performance.timeOrigin,
        mark: () => performance.mark('m').startTime,
        measure: () => { performance.mark('a'); return performance.measure('b', 'a').duration },
        json: () => performance.toJSON().timeOrigin,
        event: () => new Event('e').timeStamp,
        date: () => Date.now(),
        file: () => new File([], 'f').lastModified,
        temporal: () => typeof Temporal === 'undefined' ? 0 : Number(Temporal.Now.instant().epochNanoseconds % 1_000_000n),
    };
    const broken = {};
    for (const [name, clock] of Object.entries(clocks)) {
        let times = 0;
        for (let i = 0; i < 300; i++) { if (clock() % 1 !== 0) times += 1; new Blob(['x']) }
        if (times > 0) broken[name] = times;
    }
    return broken;";

#[test]
fn clocks_return_whole_milliseconds() {
    let found = block_on(run_in(shared(), invocation(&function(CLOCKS), Value::Null))).result.unwrap();
    assert_eq!(found, json!({}));
}

#[test]
fn console_timers_print_whole_milliseconds() {
    let code = function(
        "console.time(); for (let i = 0; i < 100; i++) { console.timeLog(); new Blob(['x']) }; console.timeEnd()",
    );
    let outcome = block_on(run_in(shared(), invocation(&format!("{code};"), Value::Null)));
    assert_eq!(outcome.console.len(), 101);
    for line in &outcome.console {
        let time = line.message.strip_prefix("default: ").and_then(|rest| rest.strip_suffix("ms")).unwrap();
        assert!(time.parse::<u64>().is_ok(), "{time}");
    }
}

#[test]
fn fine_clocks_require_the_permission_in_each_call() {
    block_on(async {
        let sandbox = start(|options| {
            options.max_workers = 1;
            options.spares = 0;
        })
        .await;
        let mut call = invocation(
            &function(
                "let fine = 0; for (let i = 0; i < 300; i++) { if (performance.now() % 1 !== 0) fine += 1; new Blob }; return fine",
            ),
            Value::Null,
        );
        call.isolation = Isolation::Tool;
        call.hrtime = true;
        assert!(run_in(&sandbox, call.clone()).await.result.unwrap().as_u64().unwrap() > 200);
        call.hrtime = false;
        assert_eq!(run_in(&sandbox, call).await.result.unwrap(), 0);
        sandbox.close().await;
    });
}
