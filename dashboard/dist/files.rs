// Written by build/dashboard.
&[
    File {
        path: "assets/index-CstA5NHR.css",
        media_type: "text/css; charset=utf-8",
        etag: "\"0f1062f5fe46c0b51dd8424c23610b8b\"",
        gzip: include_bytes!("assets/index-CstA5NHR.css.gz"),
    },
    File {
        path: "assets/index-DV5Noi6i.js",
        media_type: "text/javascript; charset=utf-8",
        etag: "\"ceec090e02bc4bfc1703d3ee10befcb4\"",
        gzip: include_bytes!("assets/index-DV5Noi6i.js.gz"),
    },
    File {
        path: "assets/worker-CREEXJdx.js",
        media_type: "text/javascript; charset=utf-8",
        etag: "\"ee058894cf6826065f74532eb3574b90\"",
        gzip: include_bytes!("assets/worker-CREEXJdx.js.gz"),
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
        etag: "\"81d15706e233e98e7fde9fae8fca82ba\"",
        gzip: include_bytes!("index.html.gz"),
    },
]
