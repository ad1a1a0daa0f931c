//! Realistic pages and the expected output of each.

use axum::Router;
use axum::http::header;
use axum::routing::get;
use rcrt_test_servers::network::serve;
use rcrt_test_tenant::golden;
use serde_json::json;

use crate::web::Web;

fn site() -> Router {
    let page = |bytes: &'static [u8]| get(move || async move { ([(header::CONTENT_TYPE, "text/html")], bytes) });
    Router::new()
        .route("/docs/retry", page(include_bytes!("../pages/documentation.html")))
        .route("/2026/tunnel", page(include_bytes!("../pages/news.html")))
        .route("/wiki/Tidal_bore", page(include_bytes!("../pages/encyclopedia.html")))
        .route("/karte.htm", page(include_bytes!("../pages/old.html")))
        .route("/q/71", page(include_bytes!("../pages/forum.html")))
        .route("/news", page(include_bytes!("../pages/front.html")))
        .route("/board", page(include_bytes!("../pages/application.html")))
        .route("/blog", page(include_bytes!("../pages/cards.html")))
}

async fn read(tool: &str, path: &str, name: &str) {
    let port = serve(site()).await;
    let web = Web::new().await.inside(&format!("site.test:{port}"));
    let text = web.text(tool, json!({"url": format!("http://site.test:{port}{path}")})).await;
    golden(env!("CARGO_MANIFEST_DIR"), name, &text.replace(&format!(":{port}"), ""));
}

#[tokio::test]
async fn documentation() {
    read("web_browse", "/docs/retry", "browse-documentation.md").await;
    read("web_fetch", "/docs/retry", "fetch-documentation.txt").await;
}

#[tokio::test]
async fn news() {
    read("web_browse", "/2026/tunnel", "browse-news.md").await;
    read("web_fetch", "/2026/tunnel", "fetch-news.txt").await;
}

#[tokio::test]
async fn an_encyclopedia() {
    read("web_browse", "/wiki/Tidal_bore", "browse-encyclopedia.md").await;
}

#[tokio::test]
async fn page_with_legacy_markup() {
    read("web_browse", "/karte.htm", "browse-old.md").await;
    read("web_fetch", "/karte.htm", "fetch-old.txt").await;
}

#[tokio::test]
async fn questions_and_answers() {
    read("web_browse", "/q/71", "browse-forum.md").await;
}

#[tokio::test]
async fn front_page_in_layout_tables() {
    read("web_browse", "/news", "browse-front.md").await;
}

#[tokio::test]
async fn page_rendered_by_scripts() {
    read("web_browse", "/board", "browse-application.md").await;
    read("web_fetch", "/board", "fetch-application.txt").await;
}

#[tokio::test]
async fn cards_that_are_links() {
    read("web_browse", "/blog", "browse-cards.md").await;
}
