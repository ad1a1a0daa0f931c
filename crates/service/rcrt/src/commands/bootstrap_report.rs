//! What a bootstrap did, for people and programs.

use serde_json::{Value, json};

use super::runner_verdict::{Verdict, Verdicts};
use crate::output::{Output, one_line};
use crate::seed::{SeedOutcome, SeedResult};

pub struct BootstrapReport {
    pub dry_run: bool,
    pub rows: Vec<SeedResult>,
    pub verdicts: Verdicts,
    pub warnings: Vec<String>,
}

impl BootstrapReport {
    /// Whether a file is not in effect: it was refused, its record was kept, or a runner refuses
    /// its tool or has not reported on it.
    pub fn has_failed(&self) -> bool {
        let is_refused = |row: &SeedResult| matches!(row.what, SeedOutcome::Refused | SeedOutcome::Kept);
        let verdicts = &self.verdicts;
        self.rows.iter().any(is_refused) || !verdicts.refusals().is_empty() || verdicts.unknown().is_some()
    }

    pub fn has_changes(&self) -> bool {
        self.has_failed() || self.rows.iter().any(|row| row.what != SeedOutcome::Unchanged)
    }

    pub fn to_json(&self) -> anyhow::Result<Value> {
        let mut files = Vec::new();
        for row in &self.rows {
            let mut file = serde_json::to_value(row)?;
            if let Some(verdict) = self.verdicts.of(&row.path) {
                file["runner"] = serde_json::to_value(verdict)?;
            }
            files.push(file);
        }
        Ok(json!({"dry_run": self.dry_run, "files": files, "warnings": self.warnings}))
    }

    pub fn print(&self, output: Output) -> anyhow::Result<()> {
        if output.is_json() {
            return output.json(&self.to_json()?);
        }
        self.print_rows(output, &self.rows.iter().collect::<Vec<_>>())
    }

    /// Prints only the files with a change or a problem; as one line of JSON, all of them.
    pub fn print_changes(&self, output: Output) -> anyhow::Result<()> {
        if output.is_json() {
            return output.json_line(&self.to_json()?);
        }
        let is_shown = |row: &&SeedResult| {
            let verdict = self.verdicts.of(&row.path);
            row.what != SeedOutcome::Unchanged || matches!(verdict, Some(Verdict::Refused { .. } | Verdict::Unknown))
        };
        self.print_rows(output, &self.rows.iter().filter(is_shown).collect::<Vec<_>>())
    }

    fn print_rows(&self, output: Output, rows: &[&SeedResult]) -> anyhow::Result<()> {
        let table: Vec<Vec<String>> = rows
            .iter()
            .map(|row| {
                let version = row.version.map_or_else(|| "-".into(), |version| version.to_string());
                vec![row.what.word(self.dry_run).to_owned(), version, row.path.clone(), one_line(&row.title, 60)]
            })
            .collect();
        output.table(&["DONE", "VERSION", "FILE", "NAME"], &table)?;
        output.line(&totals(&self.rows, self.dry_run))?;
        for warning in &self.warnings {
            eprintln!("warning: {warning}");
        }
        for finding in self.rows.iter().flat_map(|row| &row.findings) {
            eprintln!("error: {finding}");
        }
        for refusal in self.verdicts.refusals().iter().cloned().chain(self.verdicts.unknown()) {
            eprintln!("error: {refusal}");
        }
        Ok(())
    }
}

/// `2 created, 1 updated, 12 unchanged`
fn totals(rows: &[SeedResult], dry_run: bool) -> String {
    let all = [
        SeedOutcome::Created,
        SeedOutcome::Updated,
        SeedOutcome::Unchanged,
        SeedOutcome::Kept,
        SeedOutcome::Removed,
        SeedOutcome::Refused,
    ];
    let parts: Vec<String> = all
        .into_iter()
        .filter_map(|what| {
            let count = rows.iter().filter(|row| row.what == what).count();
            (count > 0).then(|| format!("{count} {}", what.word(dry_run)))
        })
        .collect();
    if parts.is_empty() { "nothing to do: no JSON files".into() } else { parts.join(", ") }
}
