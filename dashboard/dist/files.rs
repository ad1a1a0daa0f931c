// Written by build/dashboard.
&[
    File {
        path: "assets/browser-D8s4DSAC.js",
        media_type: "text/javascript; charset=utf-8",
        etag: "\"f8668400749059458a7c2ee8ae755d93\"",
        gzip: include_bytes!("assets/browser-D8s4DSAC.js.gz"),
    },
    File {
        path: "assets/checker.worker-Cyf6_3QH.js",
        media_type: "text/javascript; charset=utf-8",
        etag: "\"a6a0e95281467278da4086f9d5b2b347\"",
        gzip: include_bytes!("assets/checker.worker-Cyf6_3QH.js.gz"),
    },
    File {
        path: "assets/editor-BHHAy4o7.css",
        media_type: "text/css; charset=utf-8",
        etag: "\"4bb6911b726c6998fb1570460dcbef75\"",
        gzip: include_bytes!("assets/editor-BHHAy4o7.css.gz"),
    },
    File {
        path: "assets/editor-CNvhOeir.js",
        media_type: "text/javascript; charset=utf-8",
        etag: "\"34389b30db5eaa05a6644d89197d7b10\"",
        gzip: include_bytes!("assets/editor-CNvhOeir.js.gz"),
    },
    File {
        path: "assets/index-0jrjNIKb.js",
        media_type: "text/javascript; charset=utf-8",
        etag: "\"69e3cf0e269079c8e9f8a713330556fe\"",
        gzip: include_bytes!("assets/index-0jrjNIKb.js.gz"),
    },
    File {
        path: "assets/index-CDMFVtFe.css",
        media_type: "text/css; charset=utf-8",
        etag: "\"617123acd1b4fac792ae3f900f9c8977\"",
        gzip: include_bytes!("assets/index-CDMFVtFe.css.gz"),
    },
    File {
        path: "assets/worker-CkJ48epu.js",
        media_type: "text/javascript; charset=utf-8",
        etag: "\"0b779593045ade06a7aaec1d914ca214\"",
        gzip: include_bytes!("assets/worker-CkJ48epu.js.gz"),
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
        etag: "\"dbea7d1433bb2f0f029b0868605156bf\"",
        gzip: include_bytes!("index.html.gz"),
    },
]
