"""build/test-sdk: its steps, which of them are skipped, and how a failed one is reported."""

import os
import unittest

from stage import Stage

# The file `calls` shows the order of the steps. Each fake program fails if its call contains FAIL.
FAILS = 'if [ -n "${FAIL:-}" ]; then case "$*" in *$FAIL*) echo "the reason"; exit 3 ;; esac; fi'
SERVER = """echo $$ >"{folder}/pid"
while [ "$1" != --data ]; do shift; done
mkdir -p "$2"; echo t0k3n >"$2/token"; echo "API          http://127.0.0.1:1"; echo "Ctrl-C stops everything"; exec sleep 60"""


class SdkStage(Stage):
    def setUp(self):
        super().setUp()
        self.program = self.stand_in("rcrt", SERVER.format(folder=self.folder))
        for folder in ("", "sdk/typescript/", "sdk/python/"):
            self.write(f"{folder}LICENSE", "the license\n")
        for name in ("covered", "requirements", "installed", "guides", "session"):
            self.write(f"sdk/test/{name}.py", "")

    def sdk(self, **settings):
        return self.run_script("build/test-sdk", self.program, **settings)

    def has_node(self):
        for name in ("src/api.ts", "test/x.ts", "package.json", "package-lock.json", "prepare.mjs", ".npmrc", "README.md"):
            self.write(f"sdk/typescript/{name}", "one\n")
        for name in ("package.json", "package-lock.json", "docs_page.test.mjs", ".npmrc"):
            self.write(f"sdk/test/docs-page/{name}", "one\n")
        self.write("sdk/openapi.json", "{}")
        self.stand_in("node", f"{FAILS}\n[ \"$1\" != --version ] || echo v20.1.0")
        self.stand_in("npm", FAILS)
        self.stand_in("npx", FAILS)

    def has_python(self, version="3.11.2"):
        self.write("sdk/python/pyproject.toml", "[project]\n")
        # pip creates the folder before it can fail.
        script = """case "$*" in *"pip install"*) while [ "$1" != --target ]; do shift; done; mkdir -p "$2" ;; esac"""
        self.stand_in("python3", f'all="$*"\n{script}\nset -- "$all"\n{FAILS}\n[ "$all" != --version ] || echo "Python {version}"')

    def steps(self, words):
        return [call for call in self.called() if words in call]


class Steps(SdkStage):
    def test_node_installs_checks_tests_and_packs(self):
        self.has_node()
        self.sdk().ends(0).says("npm packages: passed", "types are those", "in Node v20.1.0: passed", "as it is published: passed", "new tools and the types of tools: passed", "all passed")
        order = ("npm ci", "npm run --silent types", "npx --no-install tsc", "node --test", "npm run --silent build", "packed.mjs", "check.mjs")
        places = [next(place for place, call in enumerate(self.called()) if step in call) for step in order]
        self.assertEqual(places, sorted(places))
        # Nothing is written into the checkout.
        self.assertFalse((self.tree / "sdk/typescript/.installed").exists())

    def test_npm_packages_are_installed_again_only_when_they_change(self):
        self.has_node()
        # One of them is for the page /docs, which has packages of its own.
        for lock, installations in (("one\n", 2), ("one\n", 2), ("two\n", 3)):
            self.write("sdk/typescript/package-lock.json", lock)
            self.sdk().ends(0)
            self.assertEqual(len(self.steps("npm ci")), installations)

    def test_changed_types_fail_with_the_difference(self):
        self.has_node()
        self.stand_in("npm", 'case "$*" in *types*) echo two >src/api.ts ;; esac')
        self.sdk().ends(1).says("-one", "+two", "sdk: failed: TypeScript: types are those of sdk/openapi.json")

    def test_deno_is_tested_if_it_is_installed(self):
        self.has_node()
        self.sdk().ends(0).says("not tested in Deno")
        self.stand_in("deno", f"{FAILS}\n[ \"$1\" != --version ] || echo 'deno 2.0.0'")
        self.sdk().ends(0).says("TypeScript: in deno 2.0.0: passed")
        self.assertIn("anywhere.mjs", self.steps("deno run")[0])
        self.sdk(FAIL="anywhere").ends(1).says("the reason", "sdk: failed: TypeScript: in deno 2.0.0")

    def test_a_browser_is_tested_if_there_is_one_and_then_other_origins_are_allowed(self):
        self.has_node()
        self.sdk().ends(0).says("not tested in a browser", "set CHROMIUM")
        self.assertNotIn("--cors-origin", self.steps("rcrt up")[0])
        named = self.stand_in("own-browser", at=self.folder)
        for name, settings in (("chromium", {}), (str(named), {"CHROMIUM": named})):
            self.stand_in("chromium")
            self.sdk(**settings).ends(0).says("TypeScript: in a browser: passed")
            self.assertIn(f"browser.mjs {name} ", self.steps("browser.mjs")[-1])
            self.assertIn("--cors-origin *", self.steps("rcrt up")[-1])
        self.sdk(FAIL="browser.mjs").ends(1).says("sdk: failed: TypeScript: in a browser")

    def test_python_installs_checks_and_tests(self):
        self.has_python()
        self.sdk().ends(0).says("Python packages: passed", "mypy --strict: passed", "tests in Python 3.11.2: passed", "all passed")
        order = ("covered.py", "-m pip install", "installed.py pip", "generate.py --check", "-m mypy", "-m pytest")
        places = [next(place for place, call in enumerate(self.called()) if step in call) for step in order]
        self.assertEqual(places, sorted(places))

    def test_python_packages_are_installed_again_only_when_they_change(self):
        for version, project, installations in (
            ("3.11.2", "[project]\n", 1),
            ("3.11.2", "[project]\n", 1),
            ("3.12.0", "[project]\n", 2),
            ("3.12.0", "[project]\nname = 'x'\n", 3),
        ):
            self.has_python(version)
            self.write("sdk/python/pyproject.toml", project)
            self.sdk().ends(0)
            self.assertEqual(len(self.steps("-m pip install")), installations)

    def test_an_installation_that_failed_is_repeated(self):
        self.has_python()
        self.sdk(FAIL="pip install").ends(1).says("sdk: failed: Python packages")
        self.sdk().ends(0)
        self.assertEqual(len(self.steps("-m pip install")), 2)

    def test_the_guides_need_both_languages(self):
        self.has_python()
        self.sdk().ends(0)
        self.assertEqual(self.steps("guides.py"), [])
        self.has_node()
        self.sdk().ends(0).says("the guides of docs/ do what they say: passed")

    def test_the_session_of_the_readme_needs_curl(self):
        self.has_python()
        self.sdk(CI="true", FAIL="nothing").says("skipped the session of README.md")
        self.assertEqual(self.steps("session.py"), [])
        self.stand_in("curl")
        self.sdk().ends(0).says("README.md shows what a session prints: passed")


class Failures(SdkStage):
    def test_a_failed_step_shows_its_output_and_the_rest_still_runs(self):
        self.has_node()
        self.has_python()
        ran = self.sdk(FAIL="tsc").ends(1).says("the reason", "tests in Node v20.1.0: FAILED", "mypy --strict: passed")
        self.assertEqual([line for line in ran.out.splitlines() if line.startswith("sdk: failed:")], ["sdk: failed: TypeScript: types and tests in Node v20.1.0"])
        self.assertNotIn("all passed", ran.out)

    def test_all_failed_steps_are_listed(self):
        self.has_node()
        self.has_python()
        ran = self.sdk(FAIL="-m ").ends(1)
        failed = [line.removeprefix("sdk: failed: ") for line in ran.out.splitlines() if line.startswith("sdk: failed: ")]
        self.assertEqual(failed, ["Python packages", "Python: mypy --strict", "Python: tests in Python 3.11.2"])

    def test_missing_programs_are_reported_and_skipped(self):
        self.sdk().ends(0).says("skipped, because this machine has no Node 20", "this machine has no Python 3.10", "sdk: all passed")

    def test_old_versions_count_as_missing(self):
        self.has_node()
        self.has_python()
        self.sdk(FAIL="process.versions").ends(0).says("this machine has no Node 20")
        self.sdk(FAIL="version_info").ends(0).says("this machine has no Python 3.10")

    def test_in_ci_missing_programs_fail(self):
        self.sdk(CI="true").ends(1).says("sdk: failed: Node 20", "Python 3.10")

    def test_a_missing_program_is_reported(self):
        self.run_script("build/test-sdk", "/nowhere/rcrt").ends(1).says("/nowhere/rcrt does not exist", "cargo build")
        self.run_script("build/test-sdk").ends(1).says("target/debug/rcrt")

    def test_a_server_that_does_not_start_is_shown_with_its_log(self):
        self.stand_in("rcrt", "echo 'rcrt: no sandbox' >&2; exit 7")
        self.sdk().ends(1).says("rcrt: no sandbox", "the server did not start")

    def test_the_server_and_the_folder_are_removed(self):
        self.sdk().ends(0)
        pid = int((self.folder / "pid").read_text())
        self.assertRaises(ProcessLookupError, os.kill, pid, 0)
        self.assertEqual(list(self.folder.glob("rcrt-sdk*")), [])


if __name__ == "__main__":
    unittest.main()
