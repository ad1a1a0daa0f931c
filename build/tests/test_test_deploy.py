"""build/test-deploy: its steps, which are skipped, and how failures are reported."""

import unittest

from stage import Stage

STEPS = ["seccomp profile of the mode nested", "npm packages", "Compose", "Python packages", "chart: lint, render, validate", "telemetry: metrics, runbooks, collector", "alerts", "scrapes", "a staged tree", "units"]
FAILS = 'if [ -n "${FAIL:-}" ]; then case "$0 $*" in *$FAIL*) echo "the reason"; exit 3 ;; esac; fi'


class Deploy(Stage):
    def setUp(self):
        super().setUp()
        self.program = self.stand_in("rcrt", at=self.folder)
        for name in ("seccomp-nested", "dist"):
            self.stand_in(name, FAILS, at=self.tree / "build")
        for name in ("requirements.txt", "package.json", "package-lock.json", ".npmrc"):
            self.write(f"deploy/tests/{name}", "one\n")
        for unit in ("server", "runner"):
            self.write(f"deploy/systemd/rcrt-{unit}.service", "[Service]\nExecStart=/usr/local/bin/rcrt\n")
        self.stand_in("npm", f'{FAILS}\nmkdir -p node_modules/.bin; printf "#!/bin/sh\\n" >node_modules/.bin/dclint; chmod +x node_modules/.bin/dclint')
        script = """case "$*" in *"pip install"*) while [ "$1" != --target ]; do shift; done; mkdir -p "$2" ;; --version) echo "Python 3.11.2" ;; esac"""
        self.stand_in("python3", f"{FAILS}\n{script}")
        self.stand_in("promtool", FAILS)
        self.stand_in("systemd-analyze", FAILS)
        # An ordinary user builds no image.
        self.stand_in("id", "echo 1000")

    def deploy(self, **settings):
        return self.run_script("build/test-deploy", self.program, **settings)


class Steps(Deploy):
    def test_all_steps_run_and_the_image_needs_root(self):
        ran = self.deploy().ends(0).says("deploy: image: skipped, because only root builds one here", "deploy: all passed")
        self.assertEqual([line.split(": passed")[0].removeprefix("deploy: ") for line in ran.out.splitlines() if ": passed in" in line], STEPS)

    def test_each_step_that_fails_shows_why_and_the_others_still_run(self):
        for words, step in (("chart.py", "chart: lint, render, validate"), ("test rules", "alerts"), ("check config", "scrapes"), ("--tree", "a staged tree"), ("verify", "units"), ("seccomp-nested", "seccomp profile of the mode nested")):
            with self.subTest(step):
                self.deploy(FAIL=words).ends(1).says("the reason", f"deploy: {step}: FAILED", f"deploy: failed: {step}\n", "image: skipped")

    def test_packages_are_installed_again_only_when_their_list_changes(self):
        for text, count in (("one\n", 1), ("one\n", 1), ("two\n", 2)):
            self.write("deploy/tests/requirements.txt", text)
            self.write("deploy/tests/package-lock.json", text)
            self.deploy().ends(0)
            self.assertEqual(sum("pip install" in call for call in self.called()), count)
            self.assertEqual(sum("npm ci" in call for call in self.called()), count)

    def test_a_unit_that_systemd_warns_about_fails(self):
        self.stand_in("systemd-analyze", '[ "$1" != verify ] || echo "rcrt-server.service:3: Unknown key name"')
        self.deploy().ends(1).says("Unknown key name", "deploy: failed: units")

    def test_the_units_have_a_bound_on_their_exposure(self):
        self.deploy().ends(0)
        bounds = [call for call in self.called() if "security" in call]
        self.assertEqual(len(bounds), 2)
        self.assertTrue(all("--threshold=" in call for call in bounds), bounds)

    def test_missing_programs_are_skipped_and_fail_in_ci(self):
        for name in ("npm", "promtool", "systemd-analyze"):
            (self.bin / name).unlink()
        self.deploy().ends(0).says("Compose: skipped, because this machine has no npm", "alerts: skipped", "units: skipped")
        self.deploy(CI="true").ends(1).says("deploy: failed: Compose: no npm", "deploy: failed: alerts: no promtool (Debian: prometheus)")

    def test_as_root_without_the_tools_the_image_is_skipped(self):
        self.stand_in("id", "echo 0")
        self.deploy().ends(0).says("image: skipped, because this machine has no buildah and mmdebstrap")
        self.deploy(CI="true").ends(1).says("deploy: failed: image: no buildah and mmdebstrap")

    def test_without_the_program_it_says_how_to_build_it(self):
        self.run_script("build/test-deploy", "/nowhere/rcrt").ends(1).says("/nowhere/rcrt does not exist", "cargo build --bin rcrt")


class Image(Deploy):
    def setUp(self):
        super().setUp()
        self.stand_in("id", "echo 0")
        self.stand_in("mmdebstrap", 'for last; do :; done; echo root >"$last"')
        self.stand_in("buildah", f'{FAILS}\ncase $1 in images) echo sha256:1; echo "${{DIGEST:-sha256:1}}" ;; from) echo container ;; esac')
        self.stand_in("podman")
        self.stand_in("crun")
        self.stand_in("umount")
        # As in the namespace: the rest of the command runs.
        self.stand_in("unshare", """case "$*" in *--user*) exit 1 ;; esac
case "$*" in *doctor*) echo 'All required protections are in force' ;; esac""")

    def test_it_is_built_twice_and_run_under_the_default_profile(self):
        self.deploy().ends(0).says("image: twice the same digest: passed", "Docker's default seccomp profile: passed", "image: jails: skipped, because this machine allows no user namespaces")
        self.assertEqual(sum(call.startswith("buildah build") for call in self.called()), 2)
        self.assertTrue(any("vendor/moby/seccomp-default.json" in call for call in self.called()))

    def test_the_base_is_made_once(self):
        self.deploy().ends(0)
        self.deploy().ends(0)
        self.assertEqual(sum(call.startswith("mmdebstrap") for call in self.called()), 1)

    def test_two_digests_fail(self):
        self.deploy(DIGEST="sha256:2").ends(1).says("deploy: failed: image: twice the same digest")

    def test_a_missing_protection_fails(self):
        self.stand_in("unshare", """case "$*" in *--user*) exit 1 ;; esac
case "$*" in *doctor*) echo 'A runner does not start on this machine' ;; esac""")
        self.deploy().ends(1).says("A runner does not start", "deploy: failed: image: under Docker's default seccomp profile")


if __name__ == "__main__":
    unittest.main()
