// Written by build/dashboard.
&[
    File {
        path: "assets/index-6IaECCBb.css",
        media_type: "text/css; charset=utf-8",
        etag: "\"8cc25c39d198c440010259dc8905ae11\"",
        gzip: include_bytes!("assets/index-6IaECCBb.css.gz"),
    },
    File {
        path: "assets/index-Iz0zaV0p.js",
        media_type: "text/javascript; charset=utf-8",
        etag: "\"a3141055b44d86c1709f041c8587f460\"",
        gzip: include_bytes!("assets/index-Iz0zaV0p.js.gz"),
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
        etag: "\"211efa29b9604d2508e0d119dfb6644d\"",
        gzip: include_bytes!("index.html.gz"),
    },
]
