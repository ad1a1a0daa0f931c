//! What a call can do, and what ends it, before its request is written.

use super::*;

#[tokio::test]
async fn a_call_computes_while_its_request_is_written() {
    let Quick { fixture, fake, runner, begun } = Quick::new().await;
    let slow = SlowDisk::new(&fixture).await;
    let asked = ask(&fixture, request("quick"), None);
    fake.until(|progress| progress.begun == begun + 1).await;
    let id = *fake.begun.lock().unwrap().last().unwrap();
    assert!(matches!(fixture.person.get(id).await, Err(StoreError::NotFound { .. })), "it is not written yet");
    assert!(!asked.is_finished());
    slow.end().await;
    assert_eq!(asked.await.unwrap().unwrap().id, id);
    let response = fixture.answer(id).await;
    assert_eq!((response.status, &response.metadata["attempt"]), (ResponseStatus::Success, &json!(1)));
    assert_eq!(fake.progress.borrow().begun, begun + 1, "it ran once");
    runner.stop().await;
}

/// After the admission the runner owns the call.
#[tokio::test]
async fn a_call_whose_caller_goes_away_is_written_and_answered() {
    let Quick { fixture, fake, runner, begun } = Quick::new().await;
    let slow = SlowDisk::new(&fixture).await;
    let asked = ask(&fixture, request("quick"), None);
    fake.until(|progress| progress.begun == begun + 1).await;
    let id = *fake.begun.lock().unwrap().last().unwrap();
    asked.abort();
    assert!(asked.await.unwrap_err().is_cancelled());
    slow.end().await;
    assert_eq!(fixture.answer(id).await.status, ResponseStatus::Success);
    assert_eq!(fake.progress.borrow().begun, begun + 1, "it ran once");
    runner.stop().await;
}

#[tokio::test]
async fn no_effect_before_the_request_is_written() {
    let (fixture, fake) = (fixture(&["acts", "quick"]).await, Fake::new());
    let done = tool_with_effect(&fake, "acts");
    let runner = fixture.start_with(&fake, one_slot());
    wait_for_empty_queue(&fixture, "quick").await;
    let begun = fake.progress.borrow().begun;
    let slow = SlowDisk::new(&fixture).await;
    let asked = ask(&fixture, request("acts"), None);
    fake.until(|progress| progress.begun == begun + 1 && progress.running["acts"] == 0).await;
    assert!(!asked.is_finished() && done.load(Ordering::SeqCst) == 0);
    slow.end().await;
    let id = asked.await.unwrap().unwrap().id;
    assert_eq!(fixture.answer(id).await.output, Some(json!({"before": 0})));
    assert_eq!((done.load(Ordering::SeqCst), fake.progress.borrow().begun), (1, begun + 2));
    // The tool is now known to have side effects, and is not run speculatively.
    assert_eq!(fixture.call("acts", json!({})).await.output, Some(json!({"before": 1})));
    assert_eq!((done.load(Ordering::SeqCst), fake.progress.borrow().begun), (2, begun + 3));
    runner.stop().await;
}

/// The tool asks for its side effect and returns without waiting for the gate.
#[tokio::test]
async fn an_effect_that_the_tool_does_not_await_is_performed() {
    let (fixture, fake) = (fixture(&["careless", "quick"]).await, Fake::new());
    fake.supports_speculation.lock().unwrap().insert("careless".into());
    let done = Arc::new(AtomicUsize::new(0));
    let counted = done.clone();
    fake.does("careless", move |call, _| {
        let done = counted.clone();
        async move {
            if call.effect_gate.wait().now_or_never() == Some(Ok(())) {
                done.fetch_add(1, Ordering::SeqCst);
            }
            Ok(json!("ended"))
        }
    });
    let runner = fixture.start_with(&fake, one_slot());
    wait_for_empty_queue(&fixture, "quick").await;
    assert_eq!(fixture.call("careless", json!({})).await.output, Some(json!("ended")));
    assert_eq!(done.load(Ordering::SeqCst), 1);
    runner.stop().await;
}

#[tokio::test]
async fn a_run_is_discarded_if_its_request_is_not_written() {
    let (fixture, fake) = (fixture(&["acts", "quick"]).await, Fake::new());
    let done = tool_with_effect(&fake, "acts");
    fake.supports_speculation.lock().unwrap().insert("quick".into());
    let runner = fixture.start_with(&fake, one_slot());
    wait_for_empty_queue(&fixture, "quick").await;
    let first = ask(&fixture, request("quick"), Some("once")).await.unwrap().unwrap();
    assert_eq!(fixture.answer(first.id).await.status, ResponseStatus::Success);
    let again = ask(&fixture, request("quick"), Some("once")).await.unwrap().unwrap();
    assert_eq!((again.id, again.replayed), (first.id, true));
    // The run begins as soon as the repeated call's slot is free.
    for _ in 0..1000 {
        let refused = ask(&fixture, request("acts"), Some("once")).await.unwrap();
        assert!(matches!(refused, Err(StoreError::IdempotencyMismatch)), "{refused:?}");
        if fake.progress.borrow().running.contains_key("acts") {
            break;
        }
    }
    fake.until(|progress| progress.running.get("acts") == Some(&0)).await;
    assert_eq!(done.load(Ordering::SeqCst), 0);
    // The slot is free again, and the call has one response.
    assert_eq!(fixture.call("acts", json!({})).await.output, Some(json!({"before": 0})));
    let responses = fixture.list(rcrt_breadcrumb::schema_names::TOOL_RESPONSE).await;
    let of_first = responses.iter().filter(|row| row.tags.contains(&ToolResponse::tag(&first.id.to_string()))).count();
    assert_eq!(of_first, 1);
    runner.stop().await;
}

#[tokio::test]
async fn a_finished_run_frees_its_slot_during_a_slow_write() {
    let Quick { fixture, fake, runner, begun } = Quick::new().await;
    let slow = SlowDisk::new(&fixture).await;
    let first = ask(&fixture, request("quick"), None);
    fake.until(|progress| progress.begun == begun + 1 && progress.running["quick"] == 0).await;
    let second = ask(&fixture, request("quick"), None);
    fake.until(|progress| progress.begun == begun + 2).await;
    slow.end().await;
    for asked in [first, second] {
        assert_eq!(fixture.answer(asked.await.unwrap().unwrap().id).await.status, ResponseStatus::Success);
    }
    assert_eq!(fake.progress.borrow().begun, begun + 2, "each ran once");
    runner.stop().await;
}

#[tokio::test]
async fn invalid_input_is_reported_when_the_request_is_written() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    let schema = json!({"input_schema": {"type": "object", "properties": {"n": {"type": "number"}}}});
    fixture.create(code("counts", schema)).await;
    fake.supports_speculation.lock().unwrap().insert("counts".into());
    let runner = fixture.start(&fake);
    wait_for_empty_queue(&fixture, "counts").await;
    let begun = fake.progress.borrow().begun;
    let before = count_claimed_at_write(&fixture).await;
    // On a busy machine, some calls go to the queue.
    while count_claimed_at_write(&fixture).await == before {
        let response = fixture.call("counts", json!({"n": "many"})).await;
        assert_eq!(response.error_code, Some(ErrorCode::InvalidArguments));
        assert_eq!(fake.progress.borrow().begun, begun);
    }
    runner.stop().await;
}

/// The check used to wait for the tool's own 60 s, and ignored the deadline and a cancellation.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deadline_applies_while_the_input_is_checked() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    fixture.create(code("quick", json!({"limits": {"timeout_ms": 60_000}}))).await;
    fake.supports_speculation.lock().unwrap().insert("quick".into());
    let runner = fixture.start_with(&fake, one_slot());
    wait_for_empty_queue(&fixture, "quick").await;
    let (begun, before) = (fake.progress.borrow().begun, count_claimed_at_write(&fixture).await);
    let busy = Busy::of(fixture.owner).await;
    let mut record = ToolRequest::record("quick", json!({"many": vec![0; 100_000]}), None, Some("workspace:test"));
    record.context.insert("deadline_ms".into(), json!(300));
    // On a busy machine, some calls go to the queue.
    while count_claimed_at_write(&fixture).await == before {
        let late = fixture.answer(fixture.create(record.clone()).await).await;
        assert_eq!(late.error_code, Some(ErrorCode::Timeout), "{late:?}");
        assert_eq!(late.error_details, Some(json!({"limit": "deadline_ms", "allowed": 300})));
    }
    assert_eq!(fake.progress.borrow().begun, begun);
    // The slot is free, and an input with a quick check still runs speculatively.
    assert_eq!(fixture.call("quick", json!({"n": 1})).await.status, ResponseStatus::Success);
    busy.end().await;
    runner.stop().await;
}

#[tokio::test]
async fn a_stopping_runner_releases_speculative_calls() {
    let (fixture, fake) = (fixture(&["acts", "quick"]).await, Fake::new());
    let done = tool_with_effect(&fake, "acts");
    let runner = fixture.start_with(&fake, one_slot());
    wait_for_empty_queue(&fixture, "quick").await;
    let (begun, before) = (fake.progress.borrow().begun, done.load(Ordering::SeqCst));
    let slow = SlowDisk::new(&fixture).await;
    let asked = ask(&fixture, request("acts"), None);
    fake.until(|progress| progress.begun == begun + 1).await;
    runner.request_stop();
    slow.end().await;
    let id = asked.await.unwrap().unwrap().id;
    runner.stop().await;
    let call = fixture.person.call(id).await.unwrap();
    assert_eq!((call.state, call.attempt), (CallState::Queued, 0));
    assert_eq!(done.load(Ordering::SeqCst), before);
    let next = fixture.start(&fake);
    assert_eq!(fixture.answer(id).await.output, Some(json!({"before": before})));
    next.stop().await;
}

/// A speculative run can be cancelled.
#[tokio::test]
async fn a_call_cancelled_during_the_write_gets_the_code_cancelled() {
    let (fixture, fake) = (fixture(&["hangs", "acts"]).await, Fake::new());
    let done = tool_with_effect(&fake, "acts");
    fake.supports_speculation.lock().unwrap().insert("hangs".into());
    let stopped: Arc<Mutex<Vec<Uuid>>> = Arc::default();
    let seen = stopped.clone();
    fake.does("hangs", move |call, stop| {
        let stopped = seen.clone();
        async move {
            stop.cancelled().await;
            stopped.lock().unwrap().push(call.request.id);
            Err(ToolFailure::new(ErrorCode::Cancelled, "stopped"))
        }
    });
    let runner = fixture.start(&fake);
    wait_for_empty_queue(&fixture, "acts").await;
    assert!(done.load(Ordering::SeqCst) > 0);
    let slow = SlowDisk::new(&fixture).await;
    let asked = ask(&fixture, request("hangs"), None);
    fake.until(|progress| progress.running.get("hangs") == Some(&1)).await;
    slow.end().await;
    let id = asked.await.unwrap().unwrap().id;
    fixture.person.cancel(id).await.unwrap();
    assert_eq!(fixture.answer(id).await.error_code, Some(ErrorCode::Cancelled));
    assert_eq!(*stopped.lock().unwrap(), [id]);
    runner.stop().await;
}

/// A call from the queue that only computes is claimed and completed, without a start.
#[tokio::test]
async fn a_call_is_started_before_an_effect_or_after_a_time() {
    let (fixture, fake) = (fixture(&["computes", "acts", "thinks", "fails", "native"]).await, Fake::new());
    let done = tool_with_effect(&fake, "acts");
    for tool in ["computes", "thinks", "fails"] {
        fake.supports_speculation.lock().unwrap().insert(tool.into());
    }
    fake.does("fails", |_, _| async { Err(ToolFailure::new(ErrorCode::ExecutionFailed, "no")) });
    let store = FailingStore::new(fixture.runner.clone());
    let heard = store.starts.subscribe();
    // Runs until its call is started.
    fake.does("thinks", move |_, _| {
        let mut heard = heard.clone();
        async move {
            let before = *heard.borrow();
            heard.wait_for(|starts| *starts > before).await.unwrap();
            Ok(json!("thought"))
        }
    });
    for (tool, starts) in [("computes", 0), ("acts", 1), ("thinks", 1), ("fails", 1), ("native", 1)] {
        let request = fixture.ask(tool, json!({})).await;
        let before = *store.starts.borrow();
        let runner = Running::start(store.clone(), &fake, options());
        let response = fixture.answer(request).await;
        runner.stop().await;
        let call = fixture.person.call(request).await.unwrap();
        assert_eq!((call.state, call.attempt), (CallState::Finished, 1), "{tool}");
        assert_eq!(response.metadata["attempt"], 1, "{tool}");
        assert_eq!(*store.starts.borrow() - before, starts, "{tool}");
    }
    assert_eq!(done.load(Ordering::SeqCst), 1);
}

/// The call did not run, so its failure does not say that it may have.
#[tokio::test]
async fn a_call_that_waits_for_a_slot_is_requeued_when_its_runner_is_lost() {
    let (fixture, fake) = (fixture(&["hangs"]).await, Fake::new());
    let gate = fake.waits("hangs");
    let runner = fixture.start_with(&fake, RunnerOptions { lease: LONG_LEASE, ..one_slot() });
    wait_for_empty_queue_behind(&fixture, &gate, "hangs").await;
    let first = fixture.ask("hangs", json!({})).await;
    fake.until(|progress| progress.running.get("hangs") == Some(&1)).await;
    let second = fixture.ask("hangs", json!({})).await;
    assert_ne!(fixture.person.call(second).await.unwrap().state, CallState::Running);
    runner.kill().await;
    fixture.end_leases().await;
    let next = fixture.start(&Fake::new());
    assert_eq!(fixture.answer(second).await.status, ResponseStatus::Success);
    assert_eq!(fixture.answer(first).await.error_code, Some(ErrorCode::ExecutionFailed));
    next.stop().await;
}
