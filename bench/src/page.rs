//! RESULTS.md: all sections that were ever measured here, the targets first. Each section has its
//! own JSON file, so a section can be measured alone.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use rcrt_load::report::number;
use rcrt_load::{Report, Row, Table};

use crate::run::Run;
use crate::sections::Section;

const HEAD: &str = "# Results\n\nWritten by `make bench`, which measures RCRT, baselines and comparable systems. Do not edit it. \
                    A ratio is to something that the same run measured in turns with it. Notes on the numbers are in `notes/`, and below.\n";

/// Creates the folders for results, and checks that they are writable.
pub fn prepare(out: &Path) -> anyhow::Result<()> {
    let folder = out.join("results");
    fs::create_dir_all(&folder)?;
    tempfile::tempfile_in(&folder)?;
    Ok(())
}

/// Whether the section was measured before.
pub fn has(out: &Path, section: Section) -> bool {
    out.join("results").join(format!("{section}.json")).is_file()
}

/// Stores a section's report and its pictures.
pub fn keep(out: &Path, section: Section, run: &Run) -> anyhow::Result<()> {
    let folder = out.join("results");
    fs::create_dir_all(&folder)?;
    for (name, svg) in &run.pictures {
        fs::write(folder.join(format!("{name}.svg")), svg)?;
    }
    let mut text = serde_json::to_string_pretty(&run.report)?;
    text.push('\n');
    fs::write(folder.join(format!("{section}.json")), text)?;
    Ok(())
}

/// Writes the page from all stored sections, and returns its path.
pub fn write(out: &Path) -> anyhow::Result<PathBuf> {
    let mut reports = Vec::new();
    for section in Section::value_variants() {
        let path = out.join("results").join(format!("{section}.json"));
        if let Ok(text) = fs::read_to_string(&path) {
            reports.push((section.to_string(), serde_json::from_str::<Report>(&text)?));
        }
    }
    let mut page = HEAD.to_owned();
    page.push_str(&runs(&reports));
    page.push_str(&targets(&reports));
    for (section, report) in &reports {
        page.push_str(&details(section, report, &pictures(out, section)?));
    }
    page.push_str(&notes(out)?);
    fs::create_dir_all(out)?;
    let path = out.join("RESULTS.md");
    fs::write(&path, page)?;
    Ok(path)
}

/// Which run measured each section.
fn runs(reports: &[(String, Report)]) -> String {
    let run = |report: &Report| {
        let commit = report.versions.get("commit").map_or("an unknown commit", String::as_str);
        format!("`{}` of {commit}, on {}", report.command, report.machine)
    };
    let mut runs: Vec<(String, Vec<&str>)> = Vec::new();
    for (section, report) in reports {
        let by = run(report);
        match runs.iter_mut().find(|(known, _)| *known == by) {
            Some((_, sections)) => sections.push(section),
            None => runs.push((by, vec![section])),
        }
    }
    let mut text = String::new();
    for (by, sections) in runs {
        // Writing to a string cannot fail.
        let _ = write!(text, "\n- {by}: {}.", sections.join(", "));
    }
    if text.is_empty() { text } else { format!("{text}\n") }
}

/// Every row that has a target.
fn targets(reports: &[(String, Report)]) -> String {
    let mut table = Table::new(["section", "what", "value", "ratio", "target", "holds"]);
    let rows = reports.iter().flat_map(|(_, report)| &report.rows).filter(|row| row.target.is_some());
    for row in rows {
        let [what, value, ratio, target, holds, _] = cells(row);
        table.row([row.section.clone(), what, value, ratio, target, holds]);
    }
    format!("\n## Targets\n\n{}", table.markdown())
}

/// One section: how it was measured, all its rows, its pictures.
fn details(section: &str, report: &Report, pictures: &[String]) -> String {
    let mut text = format!("\n## {section}\n\n");
    let versions: Vec<String> = report.versions.iter().map(|(name, version)| format!("{name} {version}")).collect();
    // Writing to a string cannot fail.
    let _ = writeln!(text, "`{}`, {}, {}; {}.\n", report.command, report.taken_at, report.machine, versions.join(", "));
    let mut table = Table::new(["what", "value", "ratio", "target", "holds", "note"]);
    for row in &report.rows {
        table.row(cells(row));
    }
    text.push_str(&table.markdown());
    for picture in pictures {
        let _ = write!(text, "\n![{picture}](results/{picture})\n");
    }
    text
}

fn cells(row: &Row) -> [String; 6] {
    let value = match row.value {
        Some(value) => format!("{} {}", number(value), row.unit),
        None => "missing".to_owned(),
    };
    let ratio = row.ratio.as_ref().map(|ratio| format!("{} × {}", number(ratio.value), ratio.to)).unwrap_or_default();
    let holds = row.holds.map_or("", |holds| if holds { "yes" } else { "**no**" });
    let (target, note) = (row.target.clone().unwrap_or_default(), row.note.clone().unwrap_or_default());
    [row.name.clone(), value, ratio, target, holds.to_owned(), note]
}

/// The section's pictures: `<section>.svg`, `<section>-….svg`.
fn pictures(out: &Path, section: &str) -> anyhow::Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(out.join("results"))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let stem = name.strip_suffix(".svg").and_then(|stem| stem.strip_prefix(section));
        if stem.is_some_and(|rest| rest.is_empty() || rest.starts_with('-')) {
            found.push(name);
        }
    }
    found.sort();
    Ok(found)
}

/// The notes, in the order of their file names.
fn notes(out: &Path) -> anyhow::Result<String> {
    let Ok(entries) = fs::read_dir(out.join("notes")) else { return Ok(String::new()) };
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    paths.sort();
    let mut text = String::new();
    for path in paths {
        text.push('\n');
        text.push_str(&fs::read_to_string(path)?);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder_with(report: &Report, section: Section) -> tempfile::TempDir {
        let out = tempfile::tempdir().unwrap();
        let results = out.path().join("results");
        fs::create_dir(&results).unwrap();
        fs::write(results.join(format!("{section}.json")), serde_json::to_string(report).unwrap()).unwrap();
        out
    }

    #[test]
    fn a_page_has_targets_first_then_sections_pictures_and_notes() {
        let mut report = Report::new("latency", "make bench");
        report.push(
            Row::new("latency at low load", "RCRT: p50", 5.0, "ms").ratio(2.0, "two inserts").target("≤ 2 ×", false),
        );
        report.push(Row::new("latency at low load", "RCRT: p99", 9.0, "ms"));
        report.push(Row::missing("latency at low load", "a peer", "its package is not available"));
        let out = folder_with(&report, Section::Latency);
        for picture in ["latency.svg", "latency-tail.svg", "latencyless.svg"] {
            fs::write(out.path().join("results").join(picture), "<svg/>").unwrap();
        }
        fs::create_dir(out.path().join("notes")).unwrap();
        fs::write(out.path().join("notes/10-limits.md"), "## Where the limits are\n").unwrap();

        let page = fs::read_to_string(write(out.path()).unwrap()).unwrap();

        let targets = page.split("## latency").next().unwrap();
        assert!(targets.contains("| RCRT: p50 | 5.00 ms | 2.50 × two inserts | ≤ 2 × | **no** |"), "{page}");
        assert!(!targets.contains("RCRT: p99"), "{page}");
        assert!(targets.contains("- `make bench` of an unknown commit, on "), "{page}");
        assert!(page.contains("missing") && page.contains("its package is not available"), "{page}");
        assert!(page.contains("(results/latency.svg)") && page.contains("(results/latency-tail.svg)"), "{page}");
        assert!(!page.contains("latencyless"), "{page}");
        assert!(page.ends_with("## Where the limits are\n"), "{page}");
    }

    #[test]
    fn a_page_without_sections_is_written() {
        let out = tempfile::tempdir().unwrap();
        assert!(write(out.path()).unwrap().is_file());
    }
}
