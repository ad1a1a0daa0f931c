// Written by build/dashboard.
&[
    File {
        path: "assets/index-CstA5NHR.css",
        media_type: "text/css; charset=utf-8",
        etag: "\"0f1062f5fe46c0b51dd8424c23610b8b\"",
        gzip: include_bytes!("assets/index-CstA5NHR.css.gz"),
    },
    File {
        path: "assets/index-DHPbGKt3.js",
        media_type: "text/javascript; charset=utf-8",
        etag: "\"e734fe763dc2b759eb8a61c41bb6f8b3\"",
        gzip: include_bytes!("assets/index-DHPbGKt3.js.gz"),
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
        etag: "\"6d34b3d8abec64f9aff7fc84fc208e81\"",
        gzip: include_bytes!("index.html.gz"),
    },
]
