//! The files of the dashboard, as a browser and a simpler client load them.

use reqwest::StatusCode;

use crate::harness::{Answer, World, answer};

/// The values of an attribute in a page.
fn values<'p>(page: &'p str, attribute: &str) -> Vec<&'p str> {
    page.split(&format!(" {attribute}=\"./")).skip(1).map(|rest| rest.split('"').next().unwrap()).collect()
}

async fn page(world: &World) -> Answer {
    world.get("/", "").await.ok()
}

#[tokio::test]
async fn the_page_and_its_files_load_without_a_token() {
    let world = World::start().await;
    let page = page(&world).await;
    assert!(page.header("content-type").starts_with("text/html"));
    assert_eq!(page.header("cache-control"), "no-cache");
    // Relative, so that it works below the path of a proxy, and without another host.
    assert!(page.text.contains("lang=\"en\"") && !page.text.contains("://") && !page.text.contains("=\"/"));
    let files = [values(&page.text, "href"), values(&page.text, "src")].concat();
    assert!(files.len() >= 3, "{files:?}");
    for file in files {
        let part = world.get(&format!("/{file}"), "").await.ok();
        assert!(!part.text.is_empty() && part.header("x-content-type-options") == "nosniff", "{file}");
        // The name of an asset changes with its content.
        assert_eq!(part.header("cache-control").contains("immutable"), file.starts_with("assets/"), "{file}");
    }
    world.get("/assets/none.js", "").await.problem(404, "unknown_path");
    world.close().await;
}

#[tokio::test]
async fn the_page_runs_nothing_but_its_own_files() {
    let world = World::start().await;
    let page = page(&world).await;
    let policy = page.header("content-security-policy");
    assert!(policy.starts_with("default-src 'none'; script-src 'self';") && policy.contains("frame-ancestors 'none'"));
    assert!(!policy.contains("unsafe"), "{policy}");
    assert!(!page.text.contains("<style") && !page.text.contains("<script>") && !page.text.contains(" style="));
    world.close().await;
}

#[tokio::test]
async fn a_file_is_compressed_for_clients_that_accept_it() {
    let world = World::start().await;
    // It decompresses nothing by itself.
    let plain = reqwest::Client::builder().no_gzip().no_brotli().build().unwrap();
    let path = values(&page(&world).await.text, "src")[0].to_owned();
    let cases = [
        ("gzip, deflate", "gzip"),
        ("br;q=1.0, GZIP;q=0.5", "gzip"),
        ("*", "gzip"),
        ("gzip;q=0", ""),
        ("identity", ""),
        ("deflate, br", ""),
    ];
    for (accepted, encoding) in cases {
        let request = plain.get(format!("{}/{path}", world.base)).header("accept-encoding", accepted);
        let response = request.send().await.unwrap();
        assert_eq!(response.headers()["vary"], "accept-encoding");
        let found = response.headers().get("content-encoding").map_or("", |value| value.to_str().unwrap()).to_owned();
        assert_eq!(found, encoding, "{accepted}");
        let body = response.bytes().await.unwrap();
        assert_eq!(body.starts_with(&[0x1f, 0x8b]), encoding == "gzip", "{accepted}");
    }
    world.close().await;
}

#[tokio::test]
async fn an_unchanged_file_is_not_sent_again() {
    let world = World::start().await;
    let tag = page(&world).await.header("etag").to_owned();
    for (known, status) in [
        (tag.clone(), StatusCode::NOT_MODIFIED),
        (format!("W/{tag}"), StatusCode::NOT_MODIFIED),
        (format!("\"other\", {tag}"), StatusCode::NOT_MODIFIED),
        ("*".to_owned(), StatusCode::NOT_MODIFIED),
        ("\"other\"".to_owned(), StatusCode::OK),
    ] {
        let again = answer(world.request("GET", "/", "").header("if-none-match", &known)).await;
        assert_eq!((again.status, again.text.is_empty()), (status, status == StatusCode::NOT_MODIFIED), "{known}");
        assert_eq!(again.header("etag"), tag);
    }
    world.close().await;
}
