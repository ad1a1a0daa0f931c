// Written by build/dashboard.
&[
    File {
        path: "assets/index-CstA5NHR.css",
        media_type: "text/css; charset=utf-8",
        etag: "\"0f1062f5fe46c0b51dd8424c23610b8b\"",
        gzip: include_bytes!("assets/index-CstA5NHR.css.gz"),
    },
    File {
        path: "assets/index-DWWCOOoS.js",
        media_type: "text/javascript; charset=utf-8",
        etag: "\"dda2004c333f609cd293e3089afd7247\"",
        gzip: include_bytes!("assets/index-DWWCOOoS.js.gz"),
    },
    File {
        path: "assets/worker-y3YnMSkQ.js",
        media_type: "text/javascript; charset=utf-8",
        etag: "\"8c2e80bbd5757a9ae30346d9a2b3cc1a\"",
        gzip: include_bytes!("assets/worker-y3YnMSkQ.js.gz"),
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
        etag: "\"ae1fed3e20ee044622eda925e795657d\"",
        gzip: include_bytes!("index.html.gz"),
    },
]
