// Written by build/dashboard.
&[
    File {
        path: "assets/index-CstA5NHR.css",
        media_type: "text/css; charset=utf-8",
        etag: "\"0f1062f5fe46c0b51dd8424c23610b8b\"",
        gzip: include_bytes!("assets/index-CstA5NHR.css.gz"),
    },
    File {
        path: "assets/index-oa5hdC3T.js",
        media_type: "text/javascript; charset=utf-8",
        etag: "\"bd42d4d87ffbb71df94d6e78d66b5817\"",
        gzip: include_bytes!("assets/index-oa5hdC3T.js.gz"),
    },
    File {
        path: "assets/worker-BIqMH7Ma.js",
        media_type: "text/javascript; charset=utf-8",
        etag: "\"4644afd2894a7a57ecc78ea04e2f21dc\"",
        gzip: include_bytes!("assets/worker-BIqMH7Ma.js.gz"),
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
        etag: "\"f07775d47ac813f7b842b25e2bf9d39c\"",
        gzip: include_bytes!("index.html.gz"),
    },
]
