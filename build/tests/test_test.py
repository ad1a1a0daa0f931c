"""build/test."""

import os
import time
import unittest
from pathlib import Path

from stage import Stage

OUTPUT = """cat <<'RAN'
test a::good ... ok
test a::{name} ... {result}
test a::slow ... ignored, only by hand
test result: {result}. 1 passed; {failed} failed; 1 ignored; 0 measured
RAN
"""


class Test(Stage):
    def setUp(self):
        super().setUp()
        self.stand_in("test-sdk", at=self.tree / "build")
        self.stand_in("test-dashboard", at=self.tree / "build")
        self.stand_in("python3")
        self.ran(failed=0)

    def ran(self, failed):
        script = OUTPUT.format(name="other", result="FAILED" if failed else "ok", failed=failed)
        self.stand_in("cargo", f"{script}\nexit {101 if failed else 0}")

    def test_results_are_counted_in_one_line(self):
        self.run_script("build/test").ends(0).says("1 passed, 0 failed, 1 skipped", "skipped 1: only by hand")
        self.assertIn("cargo test --locked --no-fail-fast --workspace", self.called())
        self.assertIn("test-sdk ", self.called())
        self.assertIn("test-dashboard ", self.called())
        self.assertTrue(any("unittest discover" in call for call in self.called()))

    def test_where_programs_can_be_jailed_their_tests_must_run(self):
        self.stand_in("cargo", 'echo "jail: ${RCRT_TEST_NEEDS_JAIL:-no}"')
        self.stand_in("unshare")
        self.run_script("build/test", "-p", "x").ends(0).says("jail: 1")
        self.stand_in("unshare", "exit 1")
        self.run_script("build/test", "-p", "x").ends(0).says("jail: no", "allows no user namespaces")

    def test_databases_are_in_memory_where_there_is_enough(self):
        self.stand_in("cargo", 'echo "temporary: $TMPDIR"; ls -d "$TMPDIR"')
        shared = Path("/dev/shm")
        is_usable = shared.is_dir() and not os.statvfs(shared).f_flag & os.ST_NOEXEC
        for free, folder in (("7", "/tmp\n"), ("8", "/dev/shm/rcrt-test." if is_usable else "/tmp\n")):
            self.stand_in("df", f"echo Avail; echo {free}")
            self.stand_in("awk", f"case $1 in *MemAvailable*) echo {2 * int(free)} ;; esac")
            ran = self.run_script("build/test", "-p", "x", TMPDIR="").ends(0).says(f"temporary: {folder}")
            used = ran.out.split("temporary: ")[1].splitlines()[0]
            self.assertEqual(Path(used).exists(), used == "/tmp")
        self.run_script("build/test", "-p", "x", TMPDIR="/var/tmp").ends(0).says("temporary: /var/tmp\n")

    def test_with_arguments_only_cargo_runs(self):
        self.run_script("build/test", "-p", "rcrt-store").ends(0)
        self.assertEqual(self.called(), ["cargo test --locked --no-fail-fast -p rcrt-store"])

    def test_a_failed_test_is_named_and_the_rest_still_runs(self):
        self.ran(failed=1)
        self.run_script("build/test").ends(101).says("failed: a::other", "1 passed, 1 failed")
        self.assertIn("test-sdk ", self.called())

    def test_failing_scripts_and_clients_fail_the_whole(self):
        self.stand_in("test-sdk", "echo 'sdk: broken'; exit 1", at=self.tree / "build")
        self.run_script("build/test").ends(1).says("sdk: broken", "run build/test-sdk")
        self.stand_in("test-sdk", at=self.tree / "build")
        self.stand_in("test-dashboard", "echo 'dashboard: broken'; echo '  1) one.spec.ts'; echo 'the reason'; exit 1", at=self.tree / "build")
        ran = self.run_script("build/test").ends(1).says("dashboard: broken", "run build/test-dashboard")
        # Its failures are printed again at the end.
        self.assertEqual((ran.out.count("the reason"), ran.out.count("dashboard: broken")), (2, 1))
        self.stand_in("test-dashboard", at=self.tree / "build")
        self.stand_in("python3", "echo 'FAILED (failures=1)' >&2; exit 1")
        self.run_script("build/test").ends(1).says("FAILED (failures=1)", "scripts of build/ failed")

    def test_the_clients_are_tested_beside_the_dashboard(self):
        # Each waits for the other.
        for name, other in (("test-sdk", "test-dashboard"), ("test-dashboard", "test-sdk")):
            met = f': >"{self.folder}/{name}"; until [ -e "{self.folder}/{other}" ]; do :; done; echo "{name} ran"'
            self.stand_in(name, met, at=self.tree / "build")
        self.run_script("build/test").ends(0).says("test-dashboard ran\ntest-sdk ran\n", "1 passed, 0 failed")

    def test_what_runs_beside_ends_with_it(self):
        sdk = f'trap \'echo gone >"{self.folder}/gone"; exit 1\' TERM; echo $PPID >"{self.folder}/began"; while :; do :; done'
        self.stand_in("test-sdk", sdk, at=self.tree / "build")
        kill = f'until [ -s "{self.folder}/began" ]; do :; done; kill -TERM "$PPID"'
        self.stand_in("test-dashboard", kill, at=self.tree / "build")
        self.assertNotEqual(self.run_script("build/test").status, 0)
        while not (self.folder / "gone").exists():
            time.sleep(0.01)

    def test_tests_that_would_never_run_are_found(self):
        self.write("crates/core/x/Cargo.toml", "[lib]\ntest = false\n")
        self.write("crates/core/x/src/lib.rs", "#[cfg(test)]\nmod tests {}\n")
        self.run_script("build/test").ends(1).says("crates/core/x/src/lib.rs", "put them into tests/")
        self.assertEqual(self.called(), [])

    def test_without_cargo_it_says_so(self):
        (self.bin / "cargo").unlink()
        self.run_script("build/test").ends(127).says("cargo: command not found")


if __name__ == "__main__":
    unittest.main()
