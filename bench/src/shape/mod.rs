//! The shape of cost: how rate and latency depend on the calls in flight, the size of a request,
//! the size of the store and the number of tools.

mod in_flight;
mod point;
mod request_size;
mod store_size;

use crate::run::Run;

pub async fn run(run: &mut Run) -> anyhow::Result<()> {
    in_flight::run(run).await?;
    request_size::run(run).await?;
    store_size::records(run).await?;
    store_size::tools(run).await
}
