"""build/preflight: missing programs are reported before anything is compiled."""

import unittest

from stage import Stage


class Preflight(Stage):
    def setUp(self):
        super().setUp()
        self.copy("Cargo.toml")
        self.cargo_is("1.95.0 (abc 2026-01-01)")
        self.stand_in("cc")
        self.stand_in("python3")

    def cargo_is(self, version):
        self.stand_in("cargo", f"echo 'cargo {version}'")

    def test_an_older_toolchain_is_reported(self):
        for version in ("1.94.1 (abc 2025-11-01)", "1.9.0", "0.99.0"):
            self.cargo_is(version)
            self.run_script("build/preflight").ends(1).says("missing: Rust 1.95 or later")

    def test_a_newer_toolchain_is_accepted(self):
        for version in ("1.95.0", "1.96.0-nightly (abc 2026-02-01)", "1.100.0", "2.0.0"):
            self.cargo_is(version)
            self.run_script("build/preflight").ends(0).is_silent()

    def test_nothing_is_printed_if_nothing_is_missing(self):
        self.run_script("build/preflight").ends(0).is_silent()
        self.assertIn("python3 vendor/v8/archive.py --check", self.called())

    def test_everything_that_is_missing_is_named_at_once(self):
        for name in ("cargo", "cc", "python3"):
            (self.bin / name).unlink()
        self.run_script("build/preflight").ends(1).says("Rust 1.95", "C compiler", "Python 3", "pip")

    def test_a_python_without_pip_is_reported(self):
        self.stand_in("python3", 'case "$*" in *pip*) exit 1 ;; esac')
        self.run_script("build/preflight").ends(1).says("pip (Debian: python3-pip)")

    def test_a_toolchain_that_does_not_start_is_missing(self):
        self.stand_in("cargo", "echo 'no default toolchain' >&2; exit 1")
        self.run_script("build/preflight").ends(1).says("Rust 1.95")

    def test_without_v8_it_fails_with_the_error_of_the_check(self):
        self.stand_in("python3", 'case "$*" in *--check*) echo "No V8. Do this." >&2; exit 1 ;; esac')
        self.run_script("build/preflight").ends(1).says("No V8. Do this.")


if __name__ == "__main__":
    unittest.main()
