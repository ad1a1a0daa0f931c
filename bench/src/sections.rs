//! The sections of a run, in order.

use std::fmt;

use clap::ValueEnum;
use futures::future::BoxFuture;

use crate::run::Run;
use crate::{floors, hosts, peers, shape, targets};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Section {
    Floors,
    Peers,
    Throughput,
    Latency,
    FirstCall,
    CleanCalls,
    Fresh,
    Authoring,
    WarmCall,
    Memory,
    RareTools,
    Waiting,
    Embedding,
    ToolSearch,
    Start,
    Dashboard,
    InFlight,
    RequestSize,
    Hosts,
    StoreSize,
    Scale,
    Build,
}

impl Section {
    /// The sections of a run without `--only`.
    pub fn usual() -> Vec<Self> {
        Self::value_variants().iter().copied().filter(|section| section.is_usual()).collect()
    }

    /// These take longer than all the others together.
    pub fn is_usual(self) -> bool {
        !matches!(self, Self::StoreSize | Self::Scale | Self::Build)
    }

    /// Measures it and puts its rows into the run's report.
    pub async fn measure(self, run: &mut Run) -> anyhow::Result<()> {
        let measuring: BoxFuture<'_, anyhow::Result<()>> = match self {
            Self::Floors => Box::pin(floors::section::run(run)),
            Self::Peers => Box::pin(peers::section::run(run)),
            Self::Throughput => Box::pin(targets::throughput::run(run)),
            Self::Latency => Box::pin(targets::latency::run(run)),
            Self::FirstCall => Box::pin(targets::first_call::run(run)),
            Self::CleanCalls => Box::pin(targets::clean_calls::run(run)),
            Self::Fresh => Box::pin(targets::fresh::run(run)),
            Self::Authoring => Box::pin(targets::authoring::run(run)),
            Self::WarmCall => Box::pin(targets::warm_call::run(run)),
            Self::Memory => Box::pin(targets::idle_memory::run(run)),
            Self::RareTools => Box::pin(targets::rare_tools::run(run)),
            Self::Waiting => Box::pin(targets::waiting::run(run)),
            Self::Embedding => Box::pin(targets::embedding::run(run)),
            Self::ToolSearch => Box::pin(targets::tool_search::run(run)),
            Self::Start => Box::pin(targets::start::run(run)),
            Self::Dashboard => Box::pin(targets::dashboard::run(run)),
            Self::InFlight => Box::pin(shape::in_flight::run(run)),
            Self::RequestSize => Box::pin(shape::request_size::run(run)),
            Self::Hosts => Box::pin(hosts::run(run)),
            Self::StoreSize => Box::pin(shape::store_size::run(run)),
            Self::Scale => Box::pin(targets::scale::run(run)),
            Self::Build => Box::pin(targets::build::run(run)),
        };
        measuring.await
    }
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.to_possible_value();
        f.write_str(name.as_ref().map_or("", |name| name.get_name()))
    }
}
