//! `web_browse` on GitHub's threads, against a replacement for its REST API with TLS.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{Html, IntoResponse, Redirect, Response};
use axum::routing::get;
use axum::{Json, Router};
use rcrt_breadcrumb::ErrorCode;
use rcrt_test_servers::tls;
use rcrt_test_tenant::golden;
use serde_json::{Value, json};

use crate::web::Web;

const TOKEN: &str = "github_pat_11ABCDEFG0123456789";

type Seen = Arc<Mutex<Vec<(String, Option<String>)>>>;

fn user(login: &str) -> Value {
    json!({"login": login, "id": 1, "type": "User", "site_admin": false})
}

fn issue(number: u64) -> Value {
    json!({"id": 1, "node_id": "I_1", "number": number, "title": "Panic when the queue is empty", "state": "closed", "state_reason": "not_planned",
        "locked": false, "user": user("ida"), "labels": [{"id": 1, "name": "bug", "color": "f00"}, {"id": 2, "name": "good first issue"}],
        "assignee": null, "assignees": [user("kay")], "milestone": {"title": "2.4"}, "comments": 2, "created_at": "2026-03-01T12:30:00Z",
        "updated_at": "2026-03-02T00:00:00Z", "closed_at": "2026-03-04T08:00:00Z", "author_association": "NONE",
        "html_url": format!("https://github.com/ferry/ferry/issues/{number}"),
        "body": "<!-- Please fill in the template -->\r\n### What happened\r\n\r\n```\r\nthread 'main' panicked\r\n```\r\n\r\n### Expected\r\n\r\n- [x] no panic\r\n"})
}

/// The responses of GitHub's API: pages with `Link`, its error format, redirects of moved
/// repositories.
async fn api(
    State(seen): State<Seen>,
    Path((owner, repository, rest)): Path<(String, String, String)>,
    Query(query): Query<HashMap<String, String>>,
    headers: HeaderMap,
) -> Response {
    let token = headers.get("authorization").map(|value| value.to_str().unwrap().to_owned());
    seen.lock().unwrap().push((format!("{owner}/{repository}/{rest}"), token.clone()));
    if !headers.contains_key("user-agent")
        || headers.get("x-github-api-version").is_none_or(|version| version != "2022-11-28")
    {
        return refuse(403, "Request forbidden by administrative rules.");
    }
    if token.as_ref().is_some_and(|token| *token != format!("Bearer {TOKEN}")) {
        return refuse(401, "Bad credentials");
    }
    match repository.as_str() {
        "busy" => {
            let limits =
                [("x-ratelimit-limit", "60"), ("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1700000000")];
            return (limits, refuse(403, "API rate limit exceeded for 127.0.0.1.")).into_response();
        }
        "down" => return refuse(502, "Server Error"),
        "moved" => return Redirect::permanent(&format!("/repos/ferry/ferry/{rest}")).into_response(),
        "secret" if token.is_none() => return refuse(404, "Not Found"),
        "secret" | "ferry" => {}
        _ => return refuse(404, "Not Found"),
    }
    let page: usize = query.get("page").map_or(1, |page| page.parse().unwrap());
    content(&rest, page)
}

fn refuse(status: u16, message: &str) -> Response {
    let body =
        json!({"message": message, "documentation_url": "https://docs.github.com/rest", "status": status.to_string()});
    (StatusCode::from_u16(status).unwrap(), Json(body)).into_response()
}

/// What the repository has under this path.
fn content(path: &str, page: usize) -> Response {
    let list = |entries: Value, goes_on: bool| {
        let link = if goes_on {
            format!(
                "<https://api.github.com/repositories/1/x?page={}>; rel=\"next\", <https://api.github.com/x?page=9>; rel=\"last\"",
                page + 1
            )
        } else {
            "<https://api.github.com/x?page=1>; rel=\"first\"".to_owned()
        };
        ([(header::LINK, link)], Json(entries)).into_response()
    };
    let comment = |login: &str, association: &str, at: &str, body: &str| json!({"id": 9, "user": user(login), "author_association": association, "created_at": at, "updated_at": at, "body": body, "reactions": {}});
    match path {
        "issues/7" => Json(issue(7)).into_response(),
        "issues/7/comments" => list(
            json!([
                comment("kay", "MEMBER", "2026-03-02T09:00:00Z", "Thanks!\r\n\r\nIt is by design."),
                {"id": 10, "user": null, "author_association": "NONE", "created_at": "2026-03-03T10:00:00Z", "body": null},
            ]),
            false,
        ),
        "issues/8" => {
            let mut endless = issue(8);
            endless["comments"] = 9000.into();
            endless["state"] = "open".into();
            endless["closed_at"] = Value::Null;
            endless["state_reason"] = Value::Null;
            Json(endless).into_response()
        }
        "issues/8/comments" => list(json!([comment("kay", "NONE", "2026-03-02T09:00:00Z", &format!("Page {page}."))]), true),
        "issues/12" => {
            let mut pull = issue(12);
            pull["title"] = "Keep the queue from panicking".into();
            pull["pull_request"] = json!({"url": "https://api.github.com/repos/ferry/ferry/pulls/12", "merged_at": "2026-03-05T08:00:00Z"});
            pull["comments"] = 1.into();
            pull["body"] = "Fixes #7.".into();
            pull["labels"] = json!([]);
            pull["assignees"] = json!([]);
            pull["milestone"] = Value::Null;
            Json(pull).into_response()
        }
        "issues/12/comments" => list(json!([comment("ida", "CONTRIBUTOR", "2026-03-04T09:00:00Z", "Rebased.")]), false),
        "pulls/12" => Json(json!({"number": 12, "draft": false, "merged": true, "merged_at": "2026-03-05T08:00:00Z", "mergeable_state": "unknown",
            "base": {"label": "ferry:main", "ref": "main", "sha": "b"}, "head": {"label": "ida:fix", "ref": "fix", "sha": "a"},
            "commits": 2, "additions": 14, "deletions": 3, "changed_files": 2}))
        .into_response(),
        "pulls/12/reviews" => list(
            json!([
                {"id": 1, "user": user("kay"), "state": "CHANGES_REQUESTED", "body": "Please add a test.", "submitted_at": "2026-03-03T09:00:00Z"},
                {"id": 2, "user": user("kay"), "state": "COMMENTED", "body": "", "submitted_at": "2026-03-03T09:05:00Z"},
                {"id": 3, "user": user("kay"), "state": "APPROVED", "body": "", "submitted_at": "2026-03-04T12:00:00Z"},
            ]),
            false,
        ),
        "pulls/12/comments" => list(
            json!([
                {"id": 50, "pull_request_review_id": 2, "path": "src/queue.rs", "line": null, "original_line": 31, "side": "RIGHT", "user": user("kay"),
                    "diff_hunk": "@@ -28,3 +28,4 @@ impl Queue {\n     fn next(&mut self) -> Option<Job> {\n-        self.jobs.remove(0)\n+        self.jobs.pop_front()",
                    "body": "Is this O(1)?", "created_at": "2026-03-03T09:05:00Z"},
                {"id": 51, "in_reply_to_id": 50, "path": "src/queue.rs", "line": null, "original_line": 31, "user": user("ida"), "diff_hunk": "x",
                    "body": "Yes.", "created_at": "2026-03-03T10:00:00Z"},
            ]),
            false,
        ),
        "pulls/12/files" => list(
            json!([
                {"sha": "1", "filename": "src/queue.rs", "status": "modified", "additions": 4, "deletions": 3, "changes": 7,
                    "patch": "@@ -28,3 +28,4 @@\n-        self.jobs.remove(0)\n+        self.jobs.pop_front()"},
                {"sha": "2", "filename": "docs/queue.png", "status": "added", "additions": 0, "deletions": 0, "changes": 0},
            ]),
            false,
        ),
        _ => refuse(404, "Not Found"),
    }
}

async fn with_github(token: Option<&str>) -> (Web, Seen) {
    let seen = Seen::default();
    let router = Router::new().route("/repos/{owner}/{repository}/{*rest}", get(api)).with_state(seen.clone());
    let port = tls::serve_router(router).await;
    let host = format!("api.github.com:{port}");
    let mut web = Web::new().await.inside(&host);
    if let Some(token) = token {
        web = web.secret("GITHUB_TOKEN", token, &host);
    }
    web.settings.github_api = format!("https://{host}/");
    (web, seen)
}

#[tokio::test]
async fn issue_with_comments() {
    let (web, seen) = with_github(None).await;
    let output = web.run("web_browse", json!({"url": "https://github.com/ferry/ferry/issues/7#issuecomment-9"})).await;
    assert_eq!(output.metadata["source"], "github_api");
    golden(env!("CARGO_MANIFEST_DIR"), "browse-github-issue.md", output.result.unwrap().as_str().unwrap());
    assert!(seen.lock().unwrap().iter().all(|(_, token)| token.is_none()));
}

#[tokio::test]
async fn pull_request_with_reviews_and_files() {
    let (web, seen) = with_github(Some(TOKEN)).await;
    let text = web.text("web_browse", json!({"url": "https://github.com/ferry/ferry/pull/12"})).await;
    golden(env!("CARGO_MANIFEST_DIR"), "browse-github-pull.md", &text);
    let text = web.text("web_browse", json!({"url": "https://github.com/ferry/ferry/pull/12/files"})).await;
    assert!(text.contains("## Changes in src/queue.rs\n\nmodified, +4 −3\n\n```diff\n@@ -28,3"), "{text}");
    assert!(text.contains("## Changes in docs/queue.png\n\nadded, +0 −0\n\n(no text changes to show)"), "{text}");
    assert!(!text.contains(TOKEN));
    let sent: Vec<_> = seen.lock().unwrap().iter().map(|(_, token)| token.clone()).collect();
    assert!(
        sent.len() == 12 && sent.iter().all(|token| token.as_deref() == Some(&format!("Bearer {TOKEN}"))),
        "{sent:?}"
    );
}

#[tokio::test]
async fn moved_repositories_are_followed_and_lists_are_bounded() {
    let (web, seen) = with_github(None).await;
    let text = web.text("web_browse", json!({"url": "https://github.com/ferry/moved/issues/7"})).await;
    assert!(text.contains("# Panic when the queue is empty"), "{text}");
    seen.lock().unwrap().clear();
    let text = web.text("web_browse", json!({"url": "https://github.com/ferry/ferry/issues/8"})).await;
    assert!(text.contains("- State: open\n") && text.contains("Page 5.") && !text.contains("Page 6."), "{text}");
    assert!(text.ends_with("[there are more comments than were read]"), "{text}");
    assert_eq!(seen.lock().unwrap().len(), 6);
}

#[tokio::test]
async fn not_found_error_says_how_to_get_access() {
    let (web, _) = with_github(None).await;
    let url = json!({"url": "https://github.com/ferry/secret/issues/7"});
    let failure = web.failure("web_browse", url.clone()).await;
    assert!(
        failure.message.contains("private (404 Not Found)") && failure.message.contains("GITHUB_TOKEN"),
        "{failure}"
    );
    assert!(failure.code == ErrorCode::ExecutionFailed && !failure.is_retryable);
    let (web, _) = with_github(Some(TOKEN)).await;
    assert!(web.text("web_browse", url.clone()).await.contains("# Panic when the queue is empty (ferry/secret#7)"));
    let failure = web.failure("web_browse", json!({"url": "https://github.com/ferry/ferry/issues/99"})).await;
    assert!(failure.message.contains("GITHUB_TOKEN cannot see it"), "{failure}");
    let (web, _) = with_github(Some("an expired token of some length")).await;
    let failure = web.failure("web_browse", url).await;
    assert!(
        failure.message.contains("refuses the secret GITHUB_TOKEN (401 Unauthorized): Bad credentials"),
        "{failure}"
    );
}

#[tokio::test]
async fn page_is_read_when_the_api_fails() {
    let page = get(|headers: HeaderMap| async move {
        assert!(!headers.contains_key("authorization"), "the token is for the API");
        Html("<title>Panic · Issue #7</title><nav>Menu</nav><main><h1>Panic</h1><p>As the page says it.</p></main>")
    });
    let port = tls::serve_router(Router::new().route("/ferry/{repository}/issues/7", page)).await;
    let (web, seen) = with_github(Some(TOKEN)).await;
    let mut web = web.inside(&format!("github.com:{port}"));
    web.settings.github = format!("https://github.com:{port}/");
    for (repository, why) in [
        (
            "busy",
            "GitHub's API could not be read (the rate limit of GitHub's API is reached (403 Forbidden)); this is the page itself",
        ),
        (
            "down",
            "GitHub's API could not be read (GitHub's API responded with 502 Bad Gateway: Server Error); this is the page itself",
        ),
    ] {
        let url = format!("https://github.com:{port}/ferry/{repository}/issues/7");
        let text = web.text("web_browse", json!({"url": url})).await;
        let expected = format!("Title: Panic · Issue #7\nURL: {url}\nNote: {why}\n\n# Panic\n\nAs the page says it.");
        assert_eq!(text, expected);
    }
    assert_eq!(seen.lock().unwrap().len(), 2);

    // The operator denies the tool the API: the record lists only the pages.
    let (api, seen) = with_github(None).await;
    let mut web = Web::new().await.unlisted(&format!("api.github.com:{port}")).inside(&format!("github.com:{port}"));
    web.settings.github.clone_from(&format!("https://github.com:{port}/"));
    web.settings.github_api.clone_from(&api.settings.github_api);
    let text = web.text("web_browse", json!({"url": format!("https://github.com:{port}/ferry/ferry/issues/7")})).await;
    assert!(
        text.contains("is not among the hosts in the tool's permissions.net") && text.ends_with("As the page says it."),
        "{text}"
    );
    assert!(seen.lock().unwrap().is_empty());
}
