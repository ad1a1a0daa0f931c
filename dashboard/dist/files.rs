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
        path: "assets/editor-BoLcubV9.js",
        media_type: "text/javascript; charset=utf-8",
        etag: "\"30c1896c1207dc721504df2322783196\"",
        gzip: include_bytes!("assets/editor-BoLcubV9.js.gz"),
    },
    File {
        path: "assets/index-CDMFVtFe.css",
        media_type: "text/css; charset=utf-8",
        etag: "\"617123acd1b4fac792ae3f900f9c8977\"",
        gzip: include_bytes!("assets/index-CDMFVtFe.css.gz"),
    },
    File {
        path: "assets/index-DNkKNvUN.js",
        media_type: "text/javascript; charset=utf-8",
        etag: "\"96c4a3c6da93c0404d31c869d8223b76\"",
        gzip: include_bytes!("assets/index-DNkKNvUN.js.gz"),
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
        etag: "\"2adcf1943af98f3d59d50ceaab529f37\"",
        gzip: include_bytes!("index.html.gz"),
    },
]
