//! `web_browse`: errors, other types, encodings, unusual markup. Realistic pages are in `pages.rs`.

use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::Html;
use axum::routing::get;
use rcrt_breadcrumb::ErrorCode;
use rcrt_test_servers::network::serve;
use serde_json::json;

use crate::web::Web;

/// The markdown of a page with this markup, without the lines above it.
async fn browsed(markup: &str) -> String {
    let markup = markup.to_owned();
    let port = serve(Router::new().route("/", get(|| async { Html(markup) }))).await;
    let web = Web::new().await.inside(&format!("site.test:{port}"));
    let text = web.text("web_browse", json!({"url": format!("http://site.test:{port}/")})).await;
    text.split_once("\n\n").unwrap().1.to_owned()
}

#[tokio::test]
async fn server_errors_are_failures_with_their_text() {
    let router = Router::new()
        .route("/gone", get(|| async { (StatusCode::GONE, Html("<main><p>It was here.</p></main>")) }))
        .route("/busy", get(|| async { (StatusCode::SERVICE_UNAVAILABLE, "later") }));
    let port = serve(router).await;
    let web = Web::new().await.inside(&format!("site.test:{port}"));
    let failure = web.failure("web_browse", json!({"url": format!("http://site.test:{port}/gone")})).await;
    assert_eq!(failure.code, ErrorCode::ExecutionFailed);
    assert!(failure.message.ends_with("responded with 410 Gone: It was here."), "{failure}");
    assert!(!failure.is_retryable);
    let failure = web.failure("web_browse", json!({"url": format!("http://site.test:{port}/busy")})).await;
    assert!(failure.is_retryable, "{failure}");
    assert_eq!(failure.details.unwrap()["http_status"], 503);
}

#[tokio::test]
async fn other_media_types_are_shown() {
    let typed =
        |kind: &'static str, body: &'static [u8]| get(move || async move { ([(header::CONTENT_TYPE, kind)], body) });
    let router = Router::new()
        .route("/json", typed("application/json", b"[1,{}]"))
        .route("/md", typed("text/markdown", b"# Hi\n\n*there*"))
        .route("/pdf", typed("application/pdf", b"%PDF-"))
        .route("/wide", typed("text/html", b"\xff\xfe<\0p\0>\0\xe4\0x\0"))
        .route("/sjis", typed("text/html; charset=Shift_JIS", b"<p>\x93\xfa\x96\x7b</p>"));
    let port = serve(router).await;
    let web = Web::new().await.inside(&format!("site.test:{port}"));
    let read = async |path: &str| {
        let text = web.text("web_browse", json!({"url": format!("http://site.test:{port}/{path}")})).await;
        text.split_once("\n\n").unwrap().1.to_owned()
    };
    assert_eq!(read("json").await, "```json\n[\n  1,\n  {}\n]\n```");
    assert_eq!(read("md").await, "# Hi\n\n*there*");
    assert_eq!(read("wide").await, "äx");
    assert_eq!(read("sjis").await, "日本");
    let failure = web.failure("web_browse", json!({"url": format!("http://site.test:{port}/pdf")})).await;
    assert!(failure.message.contains("is binary (application/pdf"), "{failure}");
}

#[tokio::test]
async fn text_keeps_spaces_and_escapes_markdown() {
    assert_eq!(
        browsed("<p>a<b> bold </b>word, <i><b>both</b></i>, <b><b>twice</b></b> and <em> </em>none").await,
        "a **bold** word, ***both***, **twice** and none"
    );
    assert_eq!(browsed("<p>one<br>two<br><br><br>three &nbsp; &shy;four\u{200b}").await, "one\ntwo\n\nthree four");
    assert_eq!(
        browsed("<p># no heading<p>- no item<p>1. none either<p>--- <p>&gt; quote<p>```").await,
        "\\# no heading\n\n\\- no item\n\n1\\. none either\n\n\\---\n\n\\> quote\n\n\\```"
    );
    assert_eq!(browsed("<p><code>a`b</code> <code>``</code> <kbd>Ctrl</kbd>").await, "``a`b`` ``` `` ``` `Ctrl`");
    assert_eq!(browsed("<pre>\n  x\n```\n  y  \n\n</pre>").await, "````\n  x\n```\n  y\n````");
    assert_eq!(
        browsed("<p>E=mc<sup>2</sup>, 1<sup>st</sup>, <q>said</q>, <s>old</s>").await,
        "E=mc^2, 1st, “said”, ~~old~~"
    );
}

#[tokio::test]
async fn links_are_absolute() {
    let text = browsed(
        "<main><p><a href='/a b(c)'>one [1]</a> <a href='//other.test/x'>two</a> <a href='javascript:evil()'>three</a> \
         <a href='#here'>four</a> <a href='data:text/html,x'>five</a> <a href='mailto:a@b.test'>six</a> <a href='?q=%0d%0a'> \
         <img src=/i.png alt='pic]'></a> <a href='https://x.test/'>https://x.test/</a> <a href='/empty'></a>.",
    )
    .await;
    let port: String = text.split("site.test:").nth(1).unwrap().chars().take_while(char::is_ascii_digit).collect();
    let expected = "[one \\[1\\]](http://site.test/a%20b%28c%29) [two](http://other.test/x) three four five [six](mailto:a@b.test) \
                    [pic\\]](http://site.test/?q=%0d%0a) https://x.test/ .";
    assert_eq!(text.replace(&format!(":{port}"), ""), expected);
}

#[tokio::test]
async fn lists_and_tables_keep_their_structure() {
    assert_eq!(
        browsed("<ul><li>a<ul><li>b<li>c<p>d</p></ul><li>e</ul><p>f").await,
        "- a\n  - b\n  - c\n\n    d\n- e\n\nf"
    );
    assert_eq!(
        browsed("<ol start=9><li>a<li value=20>b<li><pre>x\ny</pre></ol>").await,
        "9. a\n20. b\n21. ```\n    x\n    y\n    ```"
    );
    assert_eq!(
        browsed("<table><tr><td colspan=2>a<td>b<tr><td rowspan=2>c<td>d<td>e|f<tr><td>g<td>h<br>i</table>").await,
        "|  |  |  |\n| --- | --- | --- |\n| a |  | b |\n| c | d | e\\|f |\n|  | g | h<br>i |"
    );
    assert_eq!(
        browsed("<table><tr><td>only</table><table role=presentation><tr><td>a<td>b</table>").await,
        "only\n\na b"
    );
    assert_eq!(browsed("<blockquote><p>a<p>b<ul><li>c</ul></blockquote>d").await, "> a\n>\n> b\n>\n> - c\n\nd");
}

#[tokio::test]
async fn unmarked_main_content_is_found() {
    let paragraph = "<p>Running text of some length, with commas, and with more words than a menu has.</p>".repeat(6);
    let text = browsed(&format!(
        "<div class=top><ul><li><a href=/1>Menu one</a><li><a href=/2>Menu two</a></ul></div><div class=x><div class=y>{paragraph}</div></div>\
         <div class=z><a href=/3>Other story with a title</a> <a href=/4>And one more story</a></div>"
    ))
    .await;
    assert_eq!(text.matches("Running text").count(), 6);
    assert!(!text.contains("Menu") && !text.contains("Other story"), "{text}");
    // No part is clearly the content, so all of it is returned.
    let text = browsed("<div>Short.</div><div>Parts.</div>").await;
    assert_eq!(text, "Short.\nParts.");
    // A name that suggests noise on the content itself.
    let text = browsed(&format!("<body class='has-sidebar nav-open'><div id=sidebar-layout>{paragraph}</div>")).await;
    assert_eq!(text.matches("Running text").count(), 6);
}
