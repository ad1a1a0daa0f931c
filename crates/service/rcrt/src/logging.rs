//! Logs to stderr, so that stdout has only results.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

use crate::config::{Config, Format};
use crate::exit::Failure;
use crate::progress;

pub fn start(config: &Config, default: &str) -> anyhow::Result<()> {
    let wanted = config.log.as_deref().filter(|text| !text.trim().is_empty()).unwrap_or(default);
    let filter = EnvFilter::try_new(wanted).map_err(|error| {
        Failure::Usage(format!("--log: {error}; expected a level, or target=level, separated by commas"))
    })?;
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match config.log_format {
        Format::Json => {
            lines.json().flatten_event(true).init();
            progress::log_as_json();
        }
        Format::Text => lines.with_ansi(std::io::stderr().is_terminal()).init(),
    }
    Ok(())
}
