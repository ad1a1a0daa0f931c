"""Packs the built dashboard for the server: `pack.py` writes `dist`, `pack.py --check` compares.

The files are compressed with gzip, which browsers accept also without TLS (Brotli only with it).
`dist/files.rs` is the table of them that the server includes. A check compares what the files
contain, because another version of zlib compresses the same content to other bytes.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import sys
from pathlib import Path

HERE = Path(__file__).parent
BUILT, DIST = HERE / "build", HERE / "dist"
MANIFEST = ".vite/manifest.json"
MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
# What the first view transfers at most, without the API's answers.
MOST_BYTES = 150_000


def table(files: dict[str, bytes]) -> str:
    """The Rust source of the table."""
    rows = [
        f"    File {{\n"
        f'        path: "{path}",\n'
        f'        media_type: "{MEDIA_TYPES[Path(path).suffix]}",\n'
        f'        etag: "\\"{hashlib.sha256(content).hexdigest()[:32]}\\"",\n'
        f'        gzip: include_bytes!("{path}.gz"),\n'
        f"    }},\n"
        for path, content in sorted(files.items())
    ]
    return f"// Written by build/dashboard.\n&[\n{''.join(rows)}]\n"


def first_view() -> set[str]:
    """What a browser loads before the first screen: not what a screen loads on demand."""
    parts = json.loads((BUILT / MANIFEST).read_text(encoding="utf-8"))
    needed, open_parts = {"index.html", "favicon.svg"}, ["index.html"]
    while open_parts:
        part = parts[open_parts.pop()]
        needed |= {part["file"], *part.get("css", []), *part.get("assets", [])}
        open_parts += [one for one in part.get("imports", []) if parts[one]["file"] not in needed]
    return needed


def main() -> None:
    files = {file.relative_to(BUILT).as_posix(): file.read_bytes() for file in BUILT.rglob("*") if file.is_file()}
    del files[MANIFEST]
    packed = {path: gzip.compress(content, 9, mtime=0) for path, content in files.items()}
    size = sum(len(packed[path]) for path in first_view())
    whole = sum(map(len, packed.values()))
    print(f"dashboard: {len(files)} files, {sum(map(len, files.values())):,} bytes, {whole:,} compressed; first view {size:,}")
    if size > MOST_BYTES:
        sys.exit(f"dashboard: the first view transfers {size:,} bytes, more than {MOST_BYTES:,}")
    if sys.argv[1:] == ["--check"]:
        kept = {file.relative_to(DIST).as_posix()[: -len(".gz")]: gzip.decompress(file.read_bytes()) for file in DIST.rglob("*.gz")}
        same = kept == files and (DIST / "files.rs").read_text(encoding="utf-8") == table(files)
        sys.exit(None if same else "dashboard: dashboard/dist is outdated; run build/dashboard")
    for old in [*DIST.rglob("*.gz")]:
        old.unlink()
    for path, content in packed.items():
        target = DIST / f"{path}.gz"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    (DIST / "files.rs").write_text(table(files), encoding="utf-8")


main()
