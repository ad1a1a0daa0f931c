//! `make bench`: measures baselines, comparable systems and RCRT in one run, on one machine.
//!
//! Begin with `run.rs`, then `targets` (what is measured of RCRT), `floors` (baselines) and `peers`
//! (comparable systems).

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod floors;
mod hosts;
mod instance;
mod page;
mod peers;
mod rounds;
mod run;
mod sections;
mod shape;
mod targets;

use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::{Parser, Subcommand};
use rcrt_load::{Report, Row};
use tokio_util::sync::CancellationToken;

use crate::run::Run;
use crate::sections::Section;

/// Measure RCRT against baselines and comparable systems
///
/// Writes RESULTS.md, and for each section a JSON file and pictures into `results/`. If a section
/// cannot be measured, its earlier results stay. If there are none, the page shows the reason. In
/// both cases the run exits with an error.
#[derive(Debug, Parser)]
#[command(name = "bench")]
struct Options {
    /// Check in a short run that everything works. The numbers mean nothing
    #[arg(long)]
    quick: bool,

    /// Only these sections [default: all except `store-size`, `scale` and `build`]
    #[arg(long, value_delimiter = ',', value_name = "SECTION")]
    only: Vec<Section>,

    /// Where to write RESULTS.md and results/ [default: bench; with --quick a folder that git
    /// ignores]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,

    #[command(subcommand)]
    role: Option<Role>,
}

#[derive(Debug, Subcommand)]
enum Role {
    /// Run as the HTTP server of the baseline
    #[command(hide = true)]
    Echo,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    if let Some(Role::Echo) = options.role {
        return floors::serve_echo().await;
    }
    let own = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let out = options.out.unwrap_or_else(|| if options.quick { own.join("../target/bench") } else { own });
    let command = command(&options.only, options.quick);
    let mut sections = if options.only.is_empty() { Section::usual() } else { options.only };
    sections.sort_unstable();
    sections.dedup();
    page::prepare(&out).with_context(|| format!("--out: {} cannot be written", out.display()))?;
    // Before this run writes anything.
    let versions = instance::versions();
    let stop = CancellationToken::new();
    tokio::spawn(end_on_interrupt(stop.clone()));
    let mut run = Run::new(options.quick, stop, Report::new("", ""))?;
    let mut failed = Vec::new();
    for section in sections {
        progress(&format!("{section} …"));
        run.report = Report::new(section.to_string(), command.clone());
        run.report.versions.clone_from(&versions);
        run.pictures.clear();
        let measured = section.measure(&mut run).await;
        if run.stop.is_cancelled() {
            break;
        }
        let is_kept = match measured {
            Ok(()) => true,
            Err(error) => {
                failed.push(section.to_string());
                run.pictures.clear();
                run.push(Row::missing(section.to_string(), format!("the section {section}"), format!("{error:#}")));
                !page::has(&out, section)
            }
        };
        progress(&run.report.table().to_string());
        if is_kept {
            page::keep(&out, section, &run).with_context(|| format!("{} cannot be written", out.display()))?;
        }
    }
    let page = page::write(&out).with_context(|| format!("{} cannot be written", out.display()))?;
    progress(&format!("{}", page.display()));
    if run.stop.is_cancelled() {
        bail!("stopped before everything was measured");
    }
    if !failed.is_empty() {
        bail!("could not be measured: {}", failed.join(", "));
    }
    Ok(())
}

/// The command that repeats the run.
fn command(only: &[Section], is_quick: bool) -> String {
    let only: Vec<String> = only.iter().map(Section::to_string).collect();
    let only = (!only.is_empty()).then(|| format!("--only {}", only.join(",")));
    let arguments: Vec<String> = is_quick.then(|| "--quick".to_owned()).into_iter().chain(only).collect();
    if arguments.is_empty() { "make bench".into() } else { format!("make bench ARGS=\"{}\"", arguments.join(" ")) }
}

async fn end_on_interrupt(stop: CancellationToken) {
    if tokio::signal::ctrl_c().await.is_ok() {
        progress("Stopping after the current measurement");
        stop.cancel();
    }
}

fn progress(text: &str) {
    #[allow(clippy::print_stderr)]
    {
        eprintln!("{text}");
    }
}
