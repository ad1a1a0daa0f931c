//! Calls at full load while records wait to be embedded by the local model, in turns with the same
//! calls while none wait.

use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;
use rcrt_breadcrumb::{Isolation, NewBreadcrumb, Records};
use rcrt_load::Row;
use serde_json::{Map, json};
use sqlx::PgPool;
use tokio::task::JoinSet;

use crate::instance::{Answers, Instance, ToolCalls, adding};
use crate::rounds::Rounds;
use crate::run::Run;

const SECTION: &str = "embedding beside full load";
const IN_FLIGHT: usize = 32;
const SHARE: f64 = 0.9;
/// More than the model embeds in one turn.
const RECORDS: usize = 1_500;
const WORDS: usize = 300;
const WRITERS: usize = 16;

pub async fn run(run: &mut Run) -> anyhow::Result<()> {
    let instance = run.idle_instance(&run.folder("embedding"), &[]).await?;
    let answers = Answers::follow(&instance).await?;
    let tool = adding("bench-reuse", Isolation::Tool).add(&instance.client()).await?;
    let input = |number| json!({"a": number, "b": 2});
    let calls = Arc::new(ToolCalls { answers, tool, input });
    let database = instance.database().connect(rcrt_postgres::DATABASE, 1).await?;
    let (mut alone, mut beside, mut embedded) = (Rounds::default(), Rounds::default(), 0);
    for round in 0..run.times(3).max(1) {
        sqlx::query("DELETE FROM embedding_queue").execute(&database).await?;
        alone.add(&run.closed(calls.clone(), IN_FLIGHT, Duration::from_secs(1), run.seconds(8)).await);
        write(&instance, round * RECORDS).await?;
        let before = count(&database, "SELECT count(*) FROM breadcrumb_embeddings").await?;
        beside.add(&run.closed(calls.clone(), IN_FLIGHT, Duration::from_secs(1), run.seconds(8)).await);
        let after = count(&database, "SELECT count(*) FROM breadcrumb_embeddings").await?;
        let waiting = count(&database, "SELECT count(*) FROM embedding_queue").await?;
        ensure!(after > before && waiting > 0, "{} records were embedded, {waiting} waited", after - before);
        embedded += after - before;
    }
    database.close().await;
    instance.stop().await?;
    let (alone, beside) = (alone.per_second(), beside.per_second());
    run.push(Row::new(SECTION, "calls with reuse, nothing to embed", alone, "calls/s"));
    run.push(
        Row::new(SECTION, "calls with reuse, while records are embedded", beside, "calls/s")
            .ratio(alone, "nothing to embed")
            .target(format!("≥ {SHARE} × nothing to embed"), beside >= SHARE * alone)
            .note(format!("{embedded} records were embedded meanwhile, and others waited")),
    );
    Ok(())
}

/// Records of different texts.
async fn write(instance: &Instance, first: usize) -> anyhow::Result<()> {
    let client = Arc::new(instance.client());
    let mut writing = JoinSet::new();
    for number in first..first + RECORDS {
        if writing.len() == WRITERS {
            writing.join_next().await.transpose()?.transpose()?;
        }
        let client = client.clone();
        writing.spawn(async move { client.create(note(number), None).await.map(|_| ()) });
    }
    for written in writing.join_all().await {
        written?;
    }
    Ok(())
}

fn note(number: usize) -> NewBreadcrumb {
    let text: Vec<String> = (0..WORDS).map(|word| format!("word{}", (number * 31 + word * word) % 5_000)).collect();
    NewBreadcrumb {
        title: format!("Note {number}"),
        context: Map::from_iter([("text".to_owned(), json!(text.join(" ")))]),
        tags: vec!["bench".into()],
        ..NewBreadcrumb::default()
    }
}

async fn count(database: &PgPool, sql: &'static str) -> anyhow::Result<i64> {
    Ok(sqlx::query_scalar(sql).fetch_one(database).await?)
}
