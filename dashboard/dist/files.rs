// Written by build/dashboard.
&[
    File {
        path: "assets/index-CR34Nek8.css",
        media_type: "text/css; charset=utf-8",
        etag: "\"5e59ef7eeaf214da0ac50531f7b947e3\"",
        gzip: include_bytes!("assets/index-CR34Nek8.css.gz"),
    },
    File {
        path: "assets/index-DBkoVrXZ.js",
        media_type: "text/javascript; charset=utf-8",
        etag: "\"232f5bc336b139b6d55b8713bf6a398f\"",
        gzip: include_bytes!("assets/index-DBkoVrXZ.js.gz"),
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
        etag: "\"7fedeef7479ddc057dded23de67d4c71\"",
        gzip: include_bytes!("index.html.gz"),
    },
]
