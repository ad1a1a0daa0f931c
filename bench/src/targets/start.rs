//! From starting an installed system to the response of its first call.

use rcrt_load::Row;

use crate::rounds::median;
use crate::run::Run;

const SECTION: &str = "start";
const MOST_S: f64 = 1.5;
const STARTS: usize = 5;

pub async fn run(run: &mut Run) -> anyhow::Result<()> {
    let data = run.folder("start");
    let first = run.instance(&data, &[]).await?;
    let new = first.took.as_secs_f64();
    first.stop().await?;
    let mut took = Vec::new();
    for _ in 0..run.times(STARTS).max(1) {
        let instance = run.instance(&data, &[]).await?;
        took.push(instance.took.as_secs_f64());
        instance.stop().await?;
    }
    let took = median(took);
    run.push(
        Row::new(SECTION, "an installed system, to its first response", took, "s")
            .target(format!("< {MOST_S} s"), took < MOST_S)
            .note("from the start of the process to the response of its own first call, median"),
    );
    let row = Row::new(SECTION, "a new data folder, to its first response", new, "s");
    run.push(row.note("with a new database; on a new machine, with the download of Postgres"));
    Ok(())
}
