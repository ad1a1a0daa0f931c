// Written by build/dashboard.
&[
    File {
        path: "assets/index-6IaECCBb.css",
        media_type: "text/css; charset=utf-8",
        etag: "\"8cc25c39d198c440010259dc8905ae11\"",
        gzip: include_bytes!("assets/index-6IaECCBb.css.gz"),
    },
    File {
        path: "assets/index-ZWw_KWZi.js",
        media_type: "text/javascript; charset=utf-8",
        etag: "\"cedb8cecfc9b80b35368c83e99711445\"",
        gzip: include_bytes!("assets/index-ZWw_KWZi.js.gz"),
    },
    File {
        path: "assets/worker-DU5HL_wZ.js",
        media_type: "text/javascript; charset=utf-8",
        etag: "\"6dd49669afe211a97f7b6f52f9f40409\"",
        gzip: include_bytes!("assets/worker-DU5HL_wZ.js.gz"),
    },
    File {
        path: "favicon.svg",
        media_type: "image/svg+xml",
        etag: "\"00e583be02dd8e4fbc156be05b090f37\"",
        gzip: include_bytes!("favicon.svg.gz"),
    },
    File {
        path: "index.html",
        media_type: "text/html; charset=utf-8",
        etag: "\"3dfdf0ff3d88ee90e107cc210b489243\"",
        gzip: include_bytes!("index.html.gz"),
    },
]
