"""vendor/v8: the source of V8's library for a build."""

import hashlib
import http.server
import lzma
import re
import socket
import subprocess
import sys
import threading
import unittest

from stage import ROOT, Stage

sys.path.insert(0, str(ROOT / "vendor/v8"))
import archive  # noqa: E402

LIBRARY = b"a static library\n" * 5000


class Vendored(unittest.TestCase):
    def test_the_file_is_what_the_checksums_say(self):
        sums = archive.checksums()
        packed = (archive.HERE / f"{archive.VENDORED}.xz").read_bytes()
        self.assertEqual(hashlib.sha256(packed).hexdigest(), sums[f"{archive.VENDORED}.xz"])
        self.assertEqual(hashlib.sha256(lzma.decompress(packed)).hexdigest(), sums[archive.VENDORED])

    def test_its_version_is_the_one_that_the_build_needs(self):
        for lock in ("Cargo.lock", "fuzz/Cargo.lock"):
            found = re.search(r'^name = "v8"\nversion = "(.*)"$', (ROOT / lock).read_text(), re.MULTILINE)
            if lock == "Cargo.lock" or found:
                self.assertEqual(found.group(1), archive.VENDORED_VERSION, lock)

    def test_cargo_is_configured_with_its_python(self):
        config = (ROOT / ".cargo/config.toml").read_text()
        self.assertIn('PYTHON = { value = "vendor/v8/python", relative = true, force = true }', config)
        ran = subprocess.run([ROOT / "vendor/v8/python", "-c", "print(6 * 7)"], capture_output=True, text=True, check=True)
        self.assertEqual(ran.stdout, "42\n")


class Server(http.server.ThreadingHTTPServer):
    def __init__(self, files):
        self.files, self.asked = files, []
        super().__init__(("127.0.0.1", 0), Answer)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"


class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append(self.path)
        body = self.server.files.get(self.path)
        self.send_response(404 if body is None else 200)
        self.end_headers()
        self.wfile.write(body or b"")

    def log_message(self, *_):
        pass


class Archive(Stage):
    def setUp(self):
        super().setUp()
        self.copy("vendor/v8/archive.py", "vendor/v8/python", "Cargo.lock")
        self.real_python()
        self.stand_in("rustc", 'echo "host: x86_64-unknown-linux-gnu"')
        self.packed = self.tree / "vendor/v8" / f"{archive.VENDORED}.xz"
        self.packed.write_bytes(lzma.compress(LIBRARY))
        self.note_checksums(LIBRARY)
        self.into = self.folder / "out"

    def note_checksums(self, library):
        sums = {f"{archive.VENDORED}.xz": self.packed.read_bytes(), archive.VENDORED: library}
        text = "".join(f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in sums.items())
        self.write("vendor/v8/SHA256SUMS", text)

    def served(self, files):
        server = Server(files)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return server

    def download(self, url, **settings):
        words = ["./tools/download_file.py", "--url", url, "--filename", self.into]
        return self.run_script(self.tree / "vendor/v8/python", *words, **settings)

    def check(self, **settings):
        return self.run_script("python3", self.tree / "vendor/v8/archive.py", "--check", **settings)

    def on_another_machine(self):
        self.stand_in("rustc", 'echo "host: aarch64-apple-darwin"')
        return f"/v{archive.VENDORED_VERSION}/librusty_v8_simdutf_release_aarch64-apple-darwin.a.gz"

    def test_the_crates_download_returns_the_vendored_library(self):
        self.download(archive.VENDORED_URL).ends(0).is_silent()
        self.assertEqual(self.into.read_bytes(), LIBRARY)

    def test_a_python_without_lzma_uses_xz_or_says_that_it_is_missing(self):
        self.write("without/lzma.py", "raise ImportError\n")
        settings = {"PYTHONPATH": self.tree / "without"}
        unpack = "import lzma, sys; sys.stdout.buffer.write(lzma.open(sys.argv[-1]).read())"
        self.stand_in("xz", f'PYTHONPATH= exec "{sys.executable}" -c "{unpack}" "$@"')
        self.download(archive.VENDORED_URL, **settings).ends(0)
        self.assertEqual(self.into.read_bytes(), LIBRARY)
        (self.bin / "xz").unlink()
        self.download(archive.VENDORED_URL, **settings).ends(1).says("xz-utils").sentences(2)

    def test_a_damaged_library_is_refused_before_and_while_building(self):
        self.packed.write_bytes(self.packed.read_bytes()[:-1])
        for ran in (self.download(archive.VENDORED_URL), self.check()):
            ran.ends(1).says("SHA256SUMS", "git checkout").sentences(2)
        self.packed.unlink()
        self.check().ends(1).says("git checkout").sentences(2)

    def test_a_library_that_is_not_what_its_checksum_says_leaves_no_file(self):
        self.note_checksums(b"another library")
        self.download(archive.VENDORED_URL).ends(1).says("SHA256SUMS").sentences(2)
        self.assertFalse(self.into.exists())

    def test_another_library_is_downloaded(self):
        server = self.served({"/v1/other.a.gz": b"downloaded"})
        self.download(f"{server.url}/v1/other.a.gz").ends(0).is_silent()
        self.assertEqual(self.into.read_bytes(), b"downloaded")

    def test_a_failed_download_prints_two_sentences(self):
        server = self.served({})
        self.download(f"{server.url}/v1/other.a.gz").ends(1).says("HTTP 404", "RUSTY_V8_ARCHIVE").sentences(2)
        self.download("http://127.0.0.1:1/x").ends(1).says("refused", "RUSTY_V8_ARCHIVE").sentences(2)

    def test_without_python_it_prints_two_sentences(self):
        (self.bin / "python3").unlink()
        self.download(archive.VENDORED_URL).ends(1).says("there is no python3", "Debian: python3").sentences(2)

    def test_a_server_that_does_not_answer_is_reported_after_the_time_of_a_check(self):
        silent = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(silent.close)
        script = (self.tree / "vendor/v8/archive.py").read_text()
        script = script.replace("CHECK_TIMEOUT = 8", "CHECK_TIMEOUT = 0.2")
        self.write("vendor/v8/archive.py", script.replace("DOWNLOAD_TIMEOUT = 60", "DOWNLOAD_TIMEOUT = 1000"))
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/v1/other.a.gz"
        self.download(url).ends(1).says("timed out", "RUSTY_V8_ARCHIVE").sentences(2)
        self.assertFalse(self.into.exists())

    def test_everything_else_is_python(self):
        self.write("hello.py", "import sys\nprint('hello', *sys.argv[1:])\n")
        ran = self.run_script(self.tree / "vendor/v8/python", "hello.py", "a b").ends(0)
        self.assertEqual(ran.out, "hello a b\n")
        self.run_script(self.tree / "vendor/v8/python", "-c", "raise SystemExit('no')").ends(1).says("no")

    def test_the_vendored_platform_needs_no_network(self):
        self.check(http_proxy="http://127.0.0.1:1", https_proxy="http://127.0.0.1:1").ends(0).is_silent()

    def test_another_platform_is_requested_at_once(self):
        path = self.on_another_machine()
        server = self.served({path: b"x"})
        self.check(RUSTY_V8_MIRROR=server.url).ends(0).is_silent()
        self.assertEqual(server.asked, [path])
        self.check(RUSTY_V8_MIRROR="http://127.0.0.1:1").ends(1).says("Linux x86-64 only", "refused").sentences(2)

    def test_another_platform_that_was_built_or_is_in_the_cargo_home_needs_no_network(self):
        url = "http://127.0.0.1:1" + self.on_another_machine()
        settings = {"RUSTY_V8_MIRROR": "http://127.0.0.1:1"}
        self.check(**settings).ends(1)
        self.write("target/debug/gn_out/obj/librusty_v8.sum", url)
        self.check(**settings).ends(0).is_silent()
        self.check(CARGO_TARGET_DIR=self.folder / "elsewhere", **settings).ends(1)
        cached = self.home / ".cargo/.rusty_v8" / re.sub(r"[^A-Za-z0-9]", "_", url)
        cached.parent.mkdir(parents=True)
        cached.touch()
        self.check(CARGO_TARGET_DIR=self.folder / "elsewhere", **settings).ends(0).is_silent()

    def test_the_builders_own_choice_is_used(self):
        self.on_another_machine()
        settings = {"RUSTY_V8_MIRROR": "http://127.0.0.1:1"}
        self.check(V8_FROM_SOURCE=1, **settings).ends(0)
        self.check(RUSTY_V8_ARCHIVE=self.packed, **settings).ends(0)
        self.check(RUSTY_V8_ARCHIVE="/nowhere/v8.a").ends(1).says("/nowhere/v8.a", "RUSTY_V8_ARCHIVE").sentences(2)
        self.check(RUSTY_V8_MIRROR="/nowhere").ends(1).says("RUSTY_V8_MIRROR").sentences(2)

    def test_wrong_arguments_are_reported(self):
        self.run_script("python3", self.tree / "vendor/v8/archive.py").ends(2).says("--check")


if __name__ == "__main__":
    unittest.main()
