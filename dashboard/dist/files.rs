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
        path: "assets/editor-BDPm_rqS.js",
        media_type: "text/javascript; charset=utf-8",
        etag: "\"d7f4bbb0c209b4327a33129c4e107d11\"",
        gzip: include_bytes!("assets/editor-BDPm_rqS.js.gz"),
    },
    File {
        path: "assets/editor-BHHAy4o7.css",
        media_type: "text/css; charset=utf-8",
        etag: "\"4bb6911b726c6998fb1570460dcbef75\"",
        gzip: include_bytes!("assets/editor-BHHAy4o7.css.gz"),
    },
    File {
        path: "assets/index-Cwu3F2Cd.css",
        media_type: "text/css; charset=utf-8",
        etag: "\"3988151c160b001d9ce61e6c7e03972a\"",
        gzip: include_bytes!("assets/index-Cwu3F2Cd.css.gz"),
    },
    File {
        path: "assets/index-DorfOtNI.js",
        media_type: "text/javascript; charset=utf-8",
        etag: "\"05d7fbbd487b06b3a8b0bce2ddcd685d\"",
        gzip: include_bytes!("assets/index-DorfOtNI.js.gz"),
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
        etag: "\"5c4cc8f6fcac6d979c9c587f795eb22c\"",
        gzip: include_bytes!("index.html.gz"),
    },
]
