//! Expensive markup: nested a million deep, reopened again and again, half a million attributes.
//! Each page is parsed within the limits, its text is found, and cuts are reported.

use std::fmt::Write as _;
use std::time::Duration;

use axum::Router;
use axum::response::Html;
use axum::routing::get;
use rcrt_test_servers::network::serve;
use serde_json::json;

use crate::web::Web;

/// The output of each tool for the markup.
async fn read(markup: String) -> [String; 2] {
    let router = Router::new().route("/", get(|| async { Html(markup) }));
    let port = serve(router).await;
    let mut web = Web::new().await.inside(&format!("site.test:{port}"));
    // A long time limit, so that other limits apply first, on slow machines too.
    web.settings.reading_time = Duration::from_mins(2);
    let url = format!("http://site.test:{port}/");
    [
        web.text("web_fetch", json!({"url": url, "maxChars": 1_000_000})).await,
        web.text("web_browse", json!({"url": url})).await,
    ]
}

async fn is_read(name: &str, markup: String) {
    for text in read(markup).await {
        assert!(text.contains("FIRST"), "{name}: {}", &text[..text.len().min(500)]);
        assert!(text.len() < 20_000_000, "{name}: {}", text.len());
    }
}

#[tokio::test]
async fn a_million_tags_deep() {
    for tag in [
        "div",
        "b",
        "ul><li",
        "blockquote",
        "table><tr><td",
        "svg",
        "x-y",
        "font size=1",
        "dl><dd",
        "ruby",
        "button",
        "template",
        "a href=/x",
        "h1",
        "math><mi",
        "object",
        "select><option",
        "span style='display:none",
    ] {
        is_read(tag, format!("<p>FIRST</p>{}<p>LAST", format!("<{tag}>").repeat(1_000_000 / (tag.len() + 2)))).await;
    }
}

#[tokio::test]
async fn unmatched_end_tags() {
    for ends in [
        "<x><div></x></div>",
        "<b><div></b>",
        "<b><p></b>",
        "</p>",
        "</br>",
        "<div></body>",
        "<a><table><a>",
        "<table><b>",
        "<i><table></i>",
        "<template></body><div>",
        "<svg><p>",
    ] {
        is_read(ends, format!("<p>FIRST</p>{}", ends.repeat(1_900_000 / ends.len()))).await;
    }
}

#[tokio::test]
async fn formatting_reopened_by_every_paragraph() {
    let mut opened = String::new();
    for n in 0..2000 {
        write!(opened, "<b id={n}><i class=x{n}><font color={n}>").unwrap();
    }
    let pages = [
        format!("<p>FIRST</p>{opened}{}", "<p>x".repeat(450_000)),
        format!("<p>FIRST</p><p>{opened}{}", "</p><p>x".repeat(220_000)),
    ];
    for page in pages {
        is_read("reopened", page).await;
    }
}

#[tokio::test]
async fn one_tag_with_half_a_million_attributes() {
    let mut attributes = String::new();
    for n in 0..300_000 {
        write!(attributes, " {n:x}").unwrap();
    }
    let port =
        serve(Router::new().route("/", get(|| async move { Html(format!("<p>FIRST</p><p{attributes}>LAST")) }))).await;
    let mut web = Web::new().await.inside(&format!("site.test:{port}"));
    web.settings.reading_time = Duration::from_millis(300);
    for tool in ["web_fetch", "web_browse"] {
        let text = web.text(tool, json!({"url": format!("http://site.test:{port}/")})).await;
        // A fast machine may finish in time.
        assert!(text.contains("FIRST") || text.contains("the page's markup takes too long to read"), "{text}");
    }
}

#[tokio::test]
async fn growing_tables_lists_and_entities() {
    is_read(
        "spans",
        format!("<p>FIRST</p><table>{}</table>", "<tr><td colspan=1000 rowspan=65534>x<td>y".repeat(40_000)),
    )
    .await;
    is_read("cells", format!("<p>FIRST</p><table><tr>{}</table>", "<td>x".repeat(300_000))).await;
    is_read("rows", format!("<p>FIRST</p><table>{}</table>", "<tr><td>x<td>y".repeat(100_000))).await;
    is_read("items", format!("<p>FIRST</p>{}{}", "<ul><li>".repeat(200), "<li>x".repeat(300_000))).await;
    is_read("quotes", format!("<p>FIRST</p>{}{}", "<blockquote>".repeat(240), "<p>x".repeat(300_000))).await;
    is_read("entities", format!("<p>FIRST</p>{}", "&CounterClockwiseContourIntegral;".repeat(60_000))).await;
    is_read("numbers", format!("<p>FIRST</p>{}", "&#0;&#x110000;&#xD800;".repeat(90_000))).await;
    is_read("comment", format!("<p>FIRST</p><!--{}", "-".repeat(1_900_000))).await;
    is_read("doctype", format!("<p>FIRST</p><!DOCTYPE {}", "x".repeat(1_900_000))).await;
    is_read("bytes", "<p>FIRST</p>".to_owned() + &"\u{0}\u{1}<\u{7f}é".repeat(200_000)).await;
}

#[tokio::test]
async fn json_nested_a_million_deep_is_unformatted() {
    let bodies = [
        "[".repeat(1_000_000),
        format!("{}1{}", "{\"a\":".repeat(100_000), "}".repeat(100_000)),
        format!("{}{}{}", "[".repeat(120), "1,".repeat(900_000) + "1", "]".repeat(120)),
    ];
    for body in bodies {
        let start = body[..20].to_owned();
        let router = Router::new().route("/", get(|| async { ([("content-type", "application/json")], body) }));
        let port = serve(router).await;
        let web = Web::new().await.inside(&format!("site.test:{port}"));
        let text = web.text("web_fetch", json!({"url": format!("http://site.test:{port}/")})).await;
        assert!(text.contains(&format!("--- Content ---\n{start}")), "{}", &text[..300]);
        assert!(web.run("web_browse", json!({"url": format!("http://site.test:{port}/")})).await.result.is_ok());
    }
}
