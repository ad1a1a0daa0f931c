//! GitHub's issues and pull requests, through its REST API.

mod api;
mod markdown;
mod records;

use rcrt_breadcrumb::{ErrorCode, ToolFailure};
use serde_json::Value;
use url::Url;

use crate::http_client::HttpClient;
use crate::reader_pool::ReaderPool;

use api::Api;
use records::{Comment, File, Issue, Pull, Review, ReviewComment};

/// Optional: allows private repositories, and more than 60 requests an hour.
pub(crate) const GITHUB_TOKEN: &str = "GITHUB_TOKEN";

/// An issue or pull request, identified by the address of its page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Thread {
    pub owner: String,
    pub repository: String,
    pub number: u64,
    /// The page shows the changes themselves.
    pub with_changes: bool,
}

/// The contents of one thread.
struct Read {
    issue: Issue,
    comments: Vec<Comment>,
    pull: Option<PullRead>,
    /// Lists that have more entries than were read.
    cut: Vec<&'static str>,
}

struct PullRead {
    pull: Pull,
    reviews: Vec<Review>,
    review_comments: Vec<ReviewComment>,
    files: Vec<File>,
}

impl Thread {
    /// Parses `https://github.com/OWNER/REPO/issues/N`, `…/pull/N` and the tabs below that; `site`
    /// is the `https://github.com/`.
    pub fn of(url: &Url, site: &str) -> Option<Self> {
        let site = Url::parse(site).ok()?;
        let host = url.host_str()?;
        // The site redirects http to https.
        let is_there = host.strip_prefix("www.").unwrap_or(host) == site.host_str()? && url.port() == site.port();
        if !is_there {
            return None;
        }
        let mut parts = url.path_segments()?;
        let (owner, repository, kind, number) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let is_name = |name: &str| {
            !name.is_empty()
                && name.len() <= 100
                && !matches!(name, "." | "..")
                && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
        };
        if !matches!(kind, "issues" | "pull") || !is_name(owner) || !is_name(repository) {
            return None;
        }
        if number.is_empty() || number.len() > 12 || !number.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        Some(Self {
            owner: owner.to_owned(),
            repository: repository.to_owned(),
            number: number.parse().ok()?,
            with_changes: kind == "pull" && matches!(parts.next(), Some("files" | "changes")),
        })
    }
}

/// Returns the thread as markdown.
pub(crate) async fn read(
    http: &HttpClient<'_>,
    reader_pool: &ReaderPool,
    base: &str,
    thread: &Thread,
) -> Result<String, ToolFailure> {
    let api = Api::new(http, reader_pool, base, thread)?;
    let number = thread.number;
    let issue: Issue = api.one(&format!("issues/{number}")).await?;
    let mut cut = Vec::new();
    let mut note = |what: &'static str, is_cut: bool| {
        if is_cut {
            cut.push(what);
        }
    };
    let comments = if issue.comments > 0 {
        let (comments, is_cut) = api.all(&format!("issues/{number}/comments")).await?;
        note("comments", is_cut);
        comments
    } else {
        Vec::new()
    };
    let pull = if issue.pull_request.is_some() {
        let pull = api.one(&format!("pulls/{number}")).await?;
        let (reviews, more_reviews) = api.all(&format!("pulls/{number}/reviews")).await?;
        let (review_comments, more_comments) = api.all(&format!("pulls/{number}/comments")).await?;
        let (files, more_files) = api.all(&format!("pulls/{number}/files")).await?;
        note("reviews", more_reviews);
        note("review comments", more_comments);
        note("files", more_files);
        Some(PullRead { pull, reviews, review_comments, files })
    } else {
        None
    };
    let read = Read { issue, comments, pull, cut };
    let thread = thread.clone();
    reader_pool.read(move |_| markdown::write(&thread, &read)).await
}

/// Whether the page may show what the API did not: it is rate limited, down, or refused access.
pub(crate) fn is_worth_the_page(failure: &ToolFailure) -> bool {
    let status = failure.details.as_ref().and_then(|details| details.get("http_status")).and_then(Value::as_u64);
    failure.code == ErrorCode::PermissionDenied || matches!(status, Some(403 | 429 | 500..))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(url: &str) -> Option<Thread> {
        Thread::of(&Url::parse(url).unwrap(), "https://github.com/")
    }

    #[test]
    fn threads_are_parsed_from_urls() {
        let thread = of("https://github.com/rust-lang/rust/issues/1?x=1#issuecomment-2").unwrap();
        assert_eq!((thread.owner.as_str(), thread.number, thread.with_changes), ("rust-lang", 1, false));
        assert!(of("https://www.github.com/a/b/pull/12/files").unwrap().with_changes);
        assert!(!of("https://github.com/a/b/pull/12/commits").unwrap().with_changes);
        for other in [
            "https://github.com/a/b",
            "https://github.com/a/b/issues",
            "https://github.com/a/b/issues/new",
            "https://github.com/a/b/issues/12x",
            "https://github.com/a/b/issues/99999999999999",
            "https://github.com/a/%2e%2e/issues/1",
            "https://github.com/a/b%2fc/issues/1",
            "https://github.com/a/b/pulls/1",
            "https://github.com:8443/a/b/issues/1",
            "https://github.com.evil.test/a/b/issues/1",
            "https://gist.github.com/a/b/issues/1",
        ] {
            assert_eq!(of(other), None, "{other}");
        }
    }
}
