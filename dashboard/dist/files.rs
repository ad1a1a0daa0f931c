// Written by build/dashboard.
&[
    File {
        path: "assets/index-Du0rpYuK.css",
        media_type: "text/css; charset=utf-8",
        etag: "\"fb773cd06a79278a24edafdfee16c3ed\"",
        gzip: include_bytes!("assets/index-Du0rpYuK.css.gz"),
    },
    File {
        path: "assets/index-a87f4fvY.js",
        media_type: "text/javascript; charset=utf-8",
        etag: "\"0945fe4caa7d92836247ad956c994644\"",
        gzip: include_bytes!("assets/index-a87f4fvY.js.gz"),
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
        etag: "\"936a5802a87c2d22168be6343c0db005\"",
        gzip: include_bytes!("index.html.gz"),
    },
]
