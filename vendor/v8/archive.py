"""Provides V8's prebuilt static library to the build script of the crate `v8`.

    archive.py --url URL --filename FILE    what vendor/v8/python runs in place of the crate's downloader
    archive.py --check                      what build/preflight runs before anything is compiled

The library for Linux x86-64 is in this folder. Any other is downloaded, or its absence explained.
"""

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
RELEASES = "https://github.com/denoland/rusty_v8/releases/download"
VENDORED = "librusty_v8_simdutf_release_x86_64-unknown-linux-gnu.a"
VENDORED_VERSION = "150.4.0"
VENDORED_URL = f"{RELEASES}/v{VENDORED_VERSION}/{VENDORED}.gz"
# Seconds without an answer. A reachable server is far below.
CHECK_TIMEOUT = 8
DOWNLOAD_TIMEOUT = 60
PIECE = 1 << 20


class Missing(Exception):
    """Two sentences: what is missing, and what to do."""


def checksums():
    lines = (HERE / "SHA256SUMS").read_text().splitlines()
    return {name: digest for digest, name in (line.split() for line in lines)}


def damaged(name):
    return Missing(
        f"vendor/v8/{name} is not the file that vendor/v8/SHA256SUMS describes. "
        "Restore it with `git checkout -- vendor/v8`."
    )


def compressed():
    """The path of the vendored file, whose checksum was verified."""
    path = HERE / f"{VENDORED}.xz"
    try:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        digest = None
    if digest != checksums()[path.name]:
        raise damaged(path.name)
    return path


def decompress(path, out):
    try:
        import lzma
    except ImportError:
        # A Python that was built without liblzma.
        if shutil.which("xz") is None:
            raise Missing(
                "This Python has no module `lzma` and there is no `xz` to unpack V8's library with. "
                "Install xz (Debian: xz-utils)."
            ) from None
        subprocess.run(["xz", "--decompress", "--stdout", str(path)], stdout=out, check=True)
        return
    with lzma.open(path) as source:
        shutil.copyfileobj(source, out, PIECE)


def unpack(filename):
    path = compressed()
    with open(filename, "wb") as out:
        decompress(path, out)
    digest = hashlib.sha256()
    with open(filename, "rb") as unpacked:
        while piece := unpacked.read(PIECE):
            digest.update(piece)
    if digest.hexdigest() != checksums()[VENDORED]:
        os.unlink(filename)
        raise damaged(path.name)


def unreachable(url, error):
    reason = getattr(error, "reason", None) or error
    if isinstance(error, urllib.error.HTTPError):
        reason = f"HTTP {error.code}"
    return Missing(
        f"V8's prebuilt library cannot be downloaded from {url} ({reason}), "
        "and this repository has the one for Linux x86-64 only. "
        "Build where that address can be reached, or set RUSTY_V8_ARCHIVE to a copy of the file."
    )


def probe(url):
    request = urllib.request.Request(url, headers={"Range": "bytes=0-0"})
    try:
        urllib.request.urlopen(request, timeout=CHECK_TIMEOUT).close()
    except (OSError, ValueError) as error:
        raise unreachable(url, error) from None


def download(url, filename):
    # An address that does not answer is reported soon: the build waits here.
    probe(url)
    try:
        with urllib.request.urlopen(url, timeout=DOWNLOAD_TIMEOUT) as answer, open(filename, "wb") as out:
            shutil.copyfileobj(answer, out, PIECE)
    except (OSError, ValueError) as error:
        raise unreachable(url, error) from None


def wanted_url():
    """The address from which the crate's build script takes the library for this machine."""
    lock = (ROOT / "Cargo.lock").read_text()
    version = re.search(r'^name = "v8"\nversion = "(.*)"$', lock, re.MULTILINE).group(1)
    target = os.environ.get("CARGO_BUILD_TARGET")
    if not target:
        told = subprocess.run(["rustc", "-vV"], capture_output=True, text=True, check=True, cwd=ROOT).stdout
        target = re.search(r"^host: (.*)$", told, re.MULTILINE).group(1)
    base = os.environ.get("RUSTY_V8_MIRROR", RELEASES)
    return f"{base}/v{version}/librusty_v8_simdutf_release_{target}.a.gz"


def check():
    """Whether a build will find the library, in the order in which the crate's build script looks."""
    if os.environ.get("V8_FROM_SOURCE") in ("true", "1", "yes"):
        return
    url = os.environ.get("RUSTY_V8_ARCHIVE") or wanted_url()
    if not url.startswith(("http:", "https:")):
        if not Path(url).is_file():
            name = "RUSTY_V8_ARCHIVE" if os.environ.get("RUSTY_V8_ARCHIVE") else "RUSTY_V8_MIRROR"
            raise Missing(f"There is no file {url}, which {name} says. Correct {name}, or unset it.")
        return
    cargo_home = Path(os.environ.get("CARGO_HOME") or Path.home() / ".cargo")
    if (cargo_home / ".rusty_v8" / re.sub(r"[^A-Za-z0-9]", "_", url)).is_file():
        return
    if url == VENDORED_URL:
        compressed()
        return
    # A build that went well left a note of what it downloaded.
    target = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")
    note = target / "debug/gn_out/obj/librusty_v8.sum"
    if note.is_file() and note.read_text() == url:
        return
    probe(url)


def main():
    parser = argparse.ArgumentParser(description="V8's prebuilt library")
    parser.add_argument("--check", action="store_true", help="tell whether a build will find it")
    parser.add_argument("--url", help="which one is wanted")
    parser.add_argument("--filename", help="where to put it")
    args = parser.parse_args()
    if not args.check and not (args.url and args.filename):
        parser.error("--url and --filename, or --check")
    try:
        if args.check:
            check()
        elif args.url == VENDORED_URL:
            unpack(args.filename)
        else:
            download(args.url, args.filename)
    except Missing as missing:
        print(missing, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
