//! Responses that are written together with their requests.

use super::*;

/// The number of calls whose response was written with their request.
async fn count_answered_at_write(fixture: &Fixture) -> i64 {
    let mut admin = PgConnection::connect(&fixture.database.admin_url).await.unwrap();
    sqlx::query_scalar("SELECT count(*) FROM calls WHERE finished_at = queued_at").fetch_one(&mut admin).await.unwrap()
}

/// An invalid response does not make its request invalid.
#[tokio::test]
async fn a_response_that_the_database_refuses_leaves_the_call_to_its_runner() {
    let Quick { fixture, fake, runner, begun } = Quick::new().await;
    let mut admin = PgConnection::connect(&fixture.database.admin_url).await.unwrap();
    sqlx::raw_sql(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
         $$ BEGIN
            IF EXISTS (SELECT FROM calls WHERE state = 'finished' AND finished_at = queued_at AND response = NEW.id)
            THEN RAISE EXCEPTION 'no' USING ERRCODE = '23514'; END IF;
            RETURN NULL;
         END $$;
         CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON breadcrumbs DEFERRABLE INITIALLY DEFERRED
         FOR EACH ROW WHEN (NEW.schema_name = 'tool.response.v1') EXECUTE FUNCTION refuse()",
    )
    .execute(&mut admin)
    .await
    .unwrap();
    let before = count_answered_at_write(&fixture).await;
    assert_eq!(fixture.call("quick", json!({})).await.status, ResponseStatus::Success);
    assert_eq!(count_answered_at_write(&fixture).await, before);
    assert_eq!(fake.progress.borrow().begun, begun + 1, "it ran once");
    runner.stop().await;
}

#[tokio::test]
async fn an_immediate_result_is_written_with_its_request() {
    let Quick { fixture, fake, runner, begun } = Quick::new().await;
    let (mut answered, mut calls) = (count_answered_at_write(&fixture).await, 0);
    let enough = answered + 5;
    while answered < enough {
        calls += 1;
        assert!(calls < 1000, "an immediate result is written with its request");
        let response = fixture.call("quick", json!({"n": calls})).await;
        assert_eq!(response.output, Some(json!({"input": {"n": calls}, "version": 1})));
        let metadata = &response.metadata;
        assert_eq!((&metadata["attempt"], &metadata["from_executor"]), (&json!(1), &json!(true)));
        // On a busy machine, some results come after their requests were written.
        if count_answered_at_write(&fixture).await > answered {
            answered += 1;
            let stages = &metadata["stages"];
            assert_eq!((&stages["queue_ms"], &stages["claim_ms"]), (&json!(0.0), &json!(0.0)));
        }
    }
    assert_eq!(count_answered_at_write(&fixture).await, enough);
    assert_eq!(fake.progress.borrow().begun, begun + calls, "each ran once");
    runner.stop().await;
}

/// Calls without a free slot wait for one. None runs twice.
#[tokio::test]
async fn calls_that_wait_for_a_slot_are_answered_once() {
    const CALLS: usize = 50;
    let Quick { fixture, fake, runner, begun } = Quick::new().await;
    let asked: Vec<_> = (0..CALLS).map(|_| ask(&fixture, request("quick"), None)).collect();
    let mut requests = Vec::new();
    for one in asked {
        requests.push(one.await.unwrap().unwrap().id);
    }
    for request in &requests {
        assert_eq!(fixture.answer(*request).await.status, ResponseStatus::Success);
    }
    assert_eq!(fake.progress.borrow().begun, begun + CALLS);
    assert_eq!(fake.progress.borrow().most["quick"], 1, "the cap held");
    runner.stop().await;
}

#[tokio::test]
async fn a_slow_call_does_not_delay_its_request() {
    let (fixture, fake) = (fixture(&["thinks", "quick"]).await, Fake::new());
    fake.supports_speculation.lock().unwrap().extend(["thinks".to_owned(), "quick".into()]);
    let gate = fake.waits("thinks");
    let runner = fixture.start_with(&fake, one_slot());
    wait_for_empty_queue(&fixture, "quick").await;
    let before = count_answered_at_write(&fixture).await;
    let id = ask(&fixture, request("thinks"), None).await.unwrap().unwrap().id;
    assert_eq!(fixture.person.get(id).await.unwrap().id, id, "it exists while it runs");
    fake.until(|progress| progress.running.get("thinks") == Some(&1)).await;
    gate.add_permits(1);
    assert_eq!(fixture.answer(id).await.output, Some(json!("done")));
    assert_eq!(count_answered_at_write(&fixture).await, before);
    runner.stop().await;
}

/// A call's progress is written before its response.
#[tokio::test]
async fn a_response_is_written_after_the_calls_progress() {
    let (fixture, fake) = (fixture(&["tells", "quick"]).await, Fake::new());
    fake.supports_speculation.lock().unwrap().extend(["tells".to_owned(), "quick".into()]);
    fake.does("tells", |call, _| async move {
        call.progress.report(Some(0.5), "half");
        Ok(json!("told"))
    });
    let runner = fixture.start_with(&fake, one_slot());
    wait_for_empty_queue(&fixture, "quick").await;
    let before = count_answered_at_write(&fixture).await;
    assert_eq!(fixture.call("tells", json!({})).await.output, Some(json!("told")));
    assert_eq!(count_answered_at_write(&fixture).await, before);
    runner.stop().await;
}

/// A kept isolate must not have state from a call that does not exist.
#[tokio::test]
async fn a_kept_isolate_is_discarded_after_an_uncommitted_run() {
    let (fixture, fake) = (fixture(&["quick"]).await, Fake::new());
    let keeper = fixture.create(code("keeps", json!({}))).await;
    fake.supports_speculation.lock().unwrap().extend(["keeps".to_owned(), "quick".into()]);
    fake.keeps.lock().unwrap().insert("keeps".into());
    let runner = fixture.start_with(&fake, one_slot());
    wait_for_empty_queue(&fixture, "quick").await;
    let first = ask(&fixture, request("keeps"), Some("once")).await.unwrap().unwrap();
    assert_eq!(fixture.answer(first.id).await.status, ResponseStatus::Success);
    assert_eq!(fake.forgotten.borrow().get(&keeper), None);
    let mut forgotten = fake.forgotten.subscribe();
    // It runs as soon as the slot of the call before is free.
    while !forgotten.has_changed().unwrap() {
        let again = ask(&fixture, request("keeps"), Some("once")).await.unwrap().unwrap();
        assert_eq!((again.id, again.replayed), (first.id, true));
    }
    assert!(forgotten.borrow_and_update().contains_key(&keeper));
    runner.stop().await;
}
