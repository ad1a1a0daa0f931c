// Written by build/dashboard.
&[
    File {
        path: "assets/index-CstA5NHR.css",
        media_type: "text/css; charset=utf-8",
        etag: "\"0f1062f5fe46c0b51dd8424c23610b8b\"",
        gzip: include_bytes!("assets/index-CstA5NHR.css.gz"),
    },
    File {
        path: "assets/index-DDSmmPHC.js",
        media_type: "text/javascript; charset=utf-8",
        etag: "\"3d879776b745731a0fff092e92c69b8c\"",
        gzip: include_bytes!("assets/index-DDSmmPHC.js.gz"),
    },
    File {
        path: "assets/worker-BkTN3C1_.js",
        media_type: "text/javascript; charset=utf-8",
        etag: "\"e5d3662137e901a60ab7e3547543c081\"",
        gzip: include_bytes!("assets/worker-BkTN3C1_.js.gz"),
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
        etag: "\"bfded7e0eb42c6e9d848b12535647d4b\"",
        gzip: include_bytes!("index.html.gz"),
    },
]
