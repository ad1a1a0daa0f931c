""".ci/run: what it installs first, that every step runs, and its exit code."""

import unittest

from stage import Stage

STEPS = {
    "format": "check-format",
    "tests": "test",
    "api": "fuzz-api",
    "mcp": "mcp-conformance",
    "mcp clients": "mcp-clients",
    "mcp servers": "mcp-servers",
    "a2a clients": "a2a-clients",
    "deploy": "test-deploy",
    "clippy": "lint",
    "dependencies": "audit",
    "fuzz": "fuzz",
}


class Ci(Stage):
    def setUp(self):
        super().setUp()
        self.copy(".ci/run")
        self.stand_in("preflight", at=self.tree / "build")
        self.stand_in("apt-get")
        self.stand_in("make")
        self.stand_in("id", "echo 0")
        for name in ("cc", "c++", "python3", "curl", "nginx", "nats-server", "chromium", "buildah", "mmdebstrap", "podman", "crun", "promtool", "systemd-analyze"):
            self.stand_in(name)

    def ci(self, **settings):
        # Not this machine's nginx.
        return self.run_script(".ci/run", CI_SBIN=self.folder / "sbin", **settings)

    def installed(self):
        return [call.split("recommends ")[1] for call in self.called() if call.startswith("apt-get install")]

    def made(self):
        """The targets that were made, in order."""
        return [call.split()[2] for call in self.called() if call.startswith("make ")]

    def break_targets(self, *targets):
        self.stand_in("make", f'case " {" ".join(targets)} " in *" $2 "*) echo "$2 is broken"; exit 2 ;; esac')


class Steps(Ci):
    def test_all_steps_run_in_order(self):
        self.ci().ends(0).says("all passed", *(f"== {name}: done in" for name in STEPS))
        self.assertEqual(self.made(), list(STEPS.values()))
        self.assertIn("make --no-print-directory fuzz-api ARGS=20 1", self.called())

    def test_each_step_that_fails_fails_the_whole_and_the_others_still_run(self):
        for name, target in STEPS.items():
            with self.subTest(name):
                self.calls.write_text("")
                self.break_targets(target)
                ran = self.ci().ends(1).says(f"{target} is broken", f"== {name}: FAILED after", f"failed: {name}\n")
                self.assertNotIn("all passed", ran.out)
                self.assertEqual(self.made(), list(STEPS.values()))

    def test_all_that_failed_are_named(self):
        self.break_targets("check-format", "lint", "audit")
        self.ci().ends(1).says("failed: format clippy dependencies\n")

    def test_a_slow_machine_leaves_out_fuzzing_only(self):
        self.ci(CI_FUZZ_UNTIL="0").ends(0).says("== fuzz: skipped, because the steps before took", "all but fuzz passed")
        self.assertEqual(self.made(), [target for target in STEPS.values() if target != "fuzz"])

    def test_it_compiles_outside_of_the_checkout_only_in_ci(self):
        self.stand_in("make", 'echo "target ${CARGO_TARGET_DIR:-own}, incremental $CARGO_INCREMENTAL"')
        self.ci().ends(0).says("target own, incremental 0")
        self.ci(CI="true").ends(0).says(f"target {self.home}/.cache/rcrt/ci-target,")
        self.ci(CI="true", RCRT_CACHE="/cache").ends(0).says("target /cache/ci-target,")
        self.ci(CI="true", CARGO_TARGET_DIR="/other").ends(0).says("target /other,")


class Prepare(Ci):
    def test_nothing_is_installed_if_nothing_is_missing(self):
        self.ci().ends(0)
        self.assertFalse(any(call.startswith("apt-get") for call in self.called()))
        self.assertIn("preflight ", self.called())

    def test_root_installs_what_is_missing(self):
        for gone, packages in (
            (["cc"], ["build-essential"]),
            (["c++"], ["build-essential"]),
            (["cc", "python3"], ["build-essential python3 python3-pip"]),
            (["curl"], ["curl"]),
            (["nginx"], ["nginx"]),
            (["nats-server"], ["nats-server"]),
            (["chromium"], ["chromium"]),
            (["buildah", "mmdebstrap"], ["buildah", "mmdebstrap"]),
            (["promtool"], ["prometheus"]),
            (["systemd-analyze"], ["systemd"]),
            (["python3", "curl", "nginx"], ["python3 python3-pip", "curl", "nginx"]),
        ):
            with self.subTest(gone):
                self.calls.write_text("")
                for name in gone:
                    (self.bin / name).unlink()
                self.ci().ends(0)
                self.assertEqual(self.installed(), packages)
                for name in gone:
                    self.stand_in(name)

    def test_a_python_without_pip_gets_it(self):
        self.stand_in("python3", 'case "$*" in *pip*) exit 1 ;; esac')
        self.ci().ends(0)
        self.assertEqual(self.installed(), ["python3-pip"])

    def test_the_list_of_packages_is_fetched_before_the_first_installation(self):
        for gone in ("cc", "curl", "nginx", "chromium"):
            with self.subTest(gone):
                self.calls.write_text("")
                (self.bin / gone).unlink()
                self.ci().ends(0)
                apt = [call.split()[1] for call in self.called() if call.startswith("apt-get")]
                self.assertEqual(apt, ["update", "install"])
                self.stand_in(gone)

    def test_another_user_installs_nothing(self):
        self.stand_in("id", "echo 1000")
        for name in ("cc", "curl", "nginx", "chromium"):
            (self.bin / name).unlink()
        self.ci().ends(0)
        self.assertFalse(any(call.startswith("apt-get") for call in self.called()))

    def test_optional_packages_that_cannot_be_installed_are_named(self):
        for name in ("curl", "nginx", "chromium"):
            (self.bin / name).unlink()
        self.stand_in("apt-get", "exit 100")
        self.ci().ends(0).says(*(f"{name} cannot be installed; what needs it is skipped or fails" for name in ("curl", "nginx", "chromium")), "all passed")

    def test_a_required_package_that_cannot_be_installed_stops_it(self):
        (self.bin / "cc").unlink()
        self.stand_in("apt-get", "echo 'E: no network' >&2; exit 100")
        self.ci().ends(1).says("E: no network")
        self.assertEqual(self.made(), [])

    def test_a_missing_requirement_stops_it(self):
        self.stand_in("preflight", "echo 'preflight: no Rust' >&2; exit 1", at=self.tree / "build")
        self.ci().ends(1).says("preflight: no Rust")
        self.assertEqual(self.made(), [])


if __name__ == "__main__":
    unittest.main()
