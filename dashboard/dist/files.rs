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
        path: "assets/editor-XWdpeGlg.js",
        media_type: "text/javascript; charset=utf-8",
        etag: "\"3c37093e9c917b45bc5aa1f5526769c9\"",
        gzip: include_bytes!("assets/editor-XWdpeGlg.js.gz"),
    },
    File {
        path: "assets/index-CQzcMYqC.js",
        media_type: "text/javascript; charset=utf-8",
        etag: "\"8f60e399e7a83bc1711c77da117e9fef\"",
        gzip: include_bytes!("assets/index-CQzcMYqC.js.gz"),
    },
    File {
        path: "assets/index-Cd7aQaHf.css",
        media_type: "text/css; charset=utf-8",
        etag: "\"77f61c41343943c7e7fcdca274162bcb\"",
        gzip: include_bytes!("assets/index-Cd7aQaHf.css.gz"),
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
        etag: "\"7482f670fcd56af96fb390dbf6c4b482\"",
        gzip: include_bytes!("index.html.gz"),
    },
]
