// Written by build/dashboard.
&[
    File {
        path: "assets/checker.worker-Cyf6_3QH.js",
        media_type: "text/javascript; charset=utf-8",
        etag: "\"a6a0e95281467278da4086f9d5b2b347\"",
        gzip: include_bytes!("assets/checker.worker-Cyf6_3QH.js.gz"),
    },
    File {
        path: "assets/editor-DLQD4Daf.js",
        media_type: "text/javascript; charset=utf-8",
        etag: "\"68956f68d677d93dedbc2da447792d01\"",
        gzip: include_bytes!("assets/editor-DLQD4Daf.js.gz"),
    },
    File {
        path: "assets/editor-Df-N4bNW.css",
        media_type: "text/css; charset=utf-8",
        etag: "\"09614ebda075e2d7e42051f524111a81\"",
        gzip: include_bytes!("assets/editor-Df-N4bNW.css.gz"),
    },
    File {
        path: "assets/index-88yVXUxC.css",
        media_type: "text/css; charset=utf-8",
        etag: "\"e51881aa76522a1af5596550c43c14e4\"",
        gzip: include_bytes!("assets/index-88yVXUxC.css.gz"),
    },
    File {
        path: "assets/index-kLMLGIDW.js",
        media_type: "text/javascript; charset=utf-8",
        etag: "\"60f9fa147b7a46502e1bc1977c0f016b\"",
        gzip: include_bytes!("assets/index-kLMLGIDW.js.gz"),
    },
    File {
        path: "assets/worker-D70UIsaF.js",
        media_type: "text/javascript; charset=utf-8",
        etag: "\"7503f3bf993cb5c6c1d68f269e01df17\"",
        gzip: include_bytes!("assets/worker-D70UIsaF.js.gz"),
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
        etag: "\"9c1226ef24d7a7426ab60b3f05aeb4e0\"",
        gzip: include_bytes!("index.html.gz"),
    },
]
