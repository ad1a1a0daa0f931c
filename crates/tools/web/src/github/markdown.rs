//! A GitHub thread as markdown: the messages and their authors in order.

use super::records::{File, ReviewComment, User};
use super::{PullRead, Read, Thread};
use crate::text::{clean, line};

/// The most lines of a diff above a review comment.
const HUNK_LINES: usize = 8;

pub(super) fn write(thread: &Thread, read: &Read) -> String {
    let mut blocks =
        vec![format!("# {} ({}/{}#{})", line(&read.issue.title, 500), thread.owner, thread.repository, thread.number)];
    blocks.push(facts(read));
    blocks.push(body(read.issue.body.as_deref(), "No description."));
    blocks.extend(said(read).into_iter().map(|(_, block)| block));
    if let Some(pull) = &read.pull {
        blocks.extend(review_threads(&pull.review_comments));
        blocks.extend(files(&pull.files, thread.with_changes));
    }
    if !read.cut.is_empty() {
        blocks.push(format!("[there are more {} than were read]", read.cut.join(", ")));
    }
    blocks.join("\n\n")
}

fn facts(read: &Read) -> String {
    let issue = &read.issue;
    let mut facts = vec![format!("- State: {}", state(read))];
    facts.push(format!("- Author: {}, {}", name(issue.user.as_ref()), day(&issue.created_at)));
    let mut list = |what: &str, entries: Vec<String>| {
        if !entries.is_empty() {
            facts.push(format!("- {what}: {}", entries.join(", ")));
        }
    };
    list("Labels", issue.labels.iter().map(|label| line(&label.name, 100)).collect());
    list("Assigned to", issue.assignees.iter().flatten().map(|user| name(Some(user))).collect());
    list("Milestone", issue.milestone.iter().map(|milestone| line(&milestone.title, 200)).collect());
    if let Some(PullRead { pull, .. }) = &read.pull {
        let branch = |branch: &super::records::Branch| {
            line(branch.label.as_deref().filter(|label| !label.is_empty()).unwrap_or(&branch.name), 200)
        };
        facts.push(format!("- Branches: {} into {}", branch(&pull.head), branch(&pull.base)));
        facts.push(format!(
            "- Changes: {} commits, {} files, +{} −{}",
            pull.commits, pull.changed_files, pull.additions, pull.deletions
        ));
    }
    facts.join("\n")
}

fn state(read: &Read) -> String {
    let issue = &read.issue;
    if let Some(PullRead { pull, .. }) = &read.pull {
        if pull.merged {
            return format!("merged {}", day(pull.merged_at.as_deref().unwrap_or_default())).trim_end().to_owned();
        }
        if pull.draft && issue.state == "open" {
            return "open, a draft".to_owned();
        }
    }
    let mut state = line(&issue.state, 40);
    if let Some(closed) = &issue.closed_at {
        state = format!("{state} {}", day(closed));
    }
    match issue.state_reason.as_deref() {
        Some(reason) if !reason.is_empty() && issue.state == "closed" => {
            format!("{state} ({})", line(reason, 40).replace('_', " "))
        }
        _ => state,
    }
}

/// Comments and reviews with their times, sorted by time.
fn said(read: &Read) -> Vec<(String, String)> {
    let mut said: Vec<(String, String)> = read
        .comments
        .iter()
        .map(|comment| {
            let role = match comment.author_association.as_str() {
                "OWNER" | "MEMBER" | "COLLABORATOR" => {
                    format!(" ({})", line(&comment.author_association, 40).to_lowercase())
                }
                _ => String::new(),
            };
            let title = format!("## Comment by {}{role}, {}", name(comment.user.as_ref()), day(&comment.created_at));
            let block = format!("{title}\n\n{}", body(comment.body.as_deref(), "(empty)"));
            (comment.created_at.clone(), block)
        })
        .collect();
    for review in read.pull.iter().flat_map(|pull| &pull.reviews) {
        let text = body(review.body.as_deref(), "");
        let verdict = match review.state.as_str() {
            "APPROVED" => "approved",
            "CHANGES_REQUESTED" => "changes requested",
            "DISMISSED" => "dismissed",
            // The comments of such a review are shown below their lines.
            _ if text.is_empty() => continue,
            _ => "commented",
        };
        let at = review.submitted_at.clone().unwrap_or_default();
        let title = format!("## Review by {}: {verdict}, {}", name(review.user.as_ref()), day(&at));
        said.push((at, format!("{title}\n\n{text}").trim_end().to_owned()));
    }
    // The text form of the times sorts chronologically.
    said.sort_by(|a, b| a.0.cmp(&b.0));
    said
}

fn review_threads(comments: &[ReviewComment]) -> Vec<String> {
    let starts = comments
        .iter()
        .filter(|comment| comment.in_reply_to_id.is_none_or(|id| !comments.iter().any(|other| other.id == id)));
    starts
        .map(|start| {
            let location = match start.line.or(start.original_line) {
                Some(number) => format!("{}, line {number}", line(&start.path, 300)),
                None => line(&start.path, 300),
            };
            let mut blocks = vec![format!("## On {location}")];
            blocks.extend(start.diff_hunk.as_deref().map(hunk));
            let replies = comments.iter().filter(|comment| comment.in_reply_to_id == Some(start.id) && start.id != 0);
            for comment in std::iter::once(start).chain(replies) {
                let author = format!("**{}**, {}:", name(comment.user.as_ref()), day(&comment.created_at));
                blocks.push(format!("{author}\n\n{}", body(comment.body.as_deref(), "(empty)")));
            }
            blocks.join("\n\n")
        })
        .collect()
}

/// The last lines of the diff, directly above the comment.
fn hunk(diff: &str) -> String {
    let diff = clean(diff);
    let lines: Vec<&str> = diff.lines().collect();
    fenced("diff", &lines[lines.len().saturating_sub(HUNK_LINES)..].join("\n"))
}

fn files(files: &[File], with_changes: bool) -> Vec<String> {
    if files.is_empty() {
        return Vec::new();
    }
    if !with_changes {
        let lines: Vec<String> = files
            .iter()
            .map(|file| {
                let path = line(&file.filename, 300);
                format!("- `{path}` ({}, +{} −{})", line(&file.status, 20), file.additions, file.deletions)
            })
            .collect();
        return vec![format!("## Files changed\n\n{}", lines.join("\n"))];
    }
    files
        .iter()
        .map(|file| {
            let title = format!("## Changes in {}", line(&file.filename, 300));
            let patch = file.patch.as_deref().map(|patch| fenced("diff", &clean(patch)));
            let counts = format!("{}, +{} −{}", line(&file.status, 20), file.additions, file.deletions);
            format!("{title}\n\n{counts}\n\n{}", patch.unwrap_or_else(|| "(no text changes to show)".to_owned()))
        })
        .collect()
}

fn fenced(language: &str, text: &str) -> String {
    let mut fence = "```".to_owned();
    while text.contains(&fence) {
        fence.push('`');
    }
    format!("{fence}{language}\n{}\n{fence}", text.trim_end())
}

/// A user's text, which already is markdown, without the HTML comments that templates leave in it.
fn body(text: Option<&str>, empty: &str) -> String {
    let text = without_comments(&clean(text.unwrap_or_default()));
    let text = text.trim();
    if text.is_empty() { empty.to_owned() } else { text.to_owned() }
}

fn without_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("<!--") {
        let Some(end) = rest[start..].find("-->") else { break };
        out.push_str(&rest[..start]);
        rest = &rest[start + end + 3..];
    }
    out + rest
}

fn name(user: Option<&User>) -> String {
    let login = user.map(|user| line(&user.login, 100)).filter(|login| !login.is_empty());
    login.map_or_else(|| "@ghost".to_owned(), |login| format!("@{login}"))
}

/// `2026-03-01 12:30 UTC`, of `2026-03-01T12:30:00Z`.
fn day(time: &str) -> String {
    match (time.get(..10), time.get(11..16)) {
        (Some(date), Some(minute)) if time.ends_with('Z') => line(&format!("{date} {minute} UTC"), 40),
        _ => line(time, 40),
    }
}
