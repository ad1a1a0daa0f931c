"""build/tool, build/audit, build/describe."""

import unittest

from stage import Stage


class Tool(Stage):
    # As `cargo install` does: the tool is installed under --root.
    INSTALL = """while [ "$1" != --root ]; do shift; done
mkdir -p "$2/bin"; printf '#!/bin/sh\\necho "cargo-x 1.2.3"\\n' >"$2/bin/cargo-x"; chmod +x "$2/bin/cargo-x" """

    def test_a_tool_is_built_once(self):
        self.stand_in("cargo", self.INSTALL)
        expected = f"{self.home}/.cache/rcrt/tools/bin/cargo-x\n"
        ran = self.run_script("build/tool", "cargo-x", "1.2.3").ends(0).says("Building cargo-x 1.2.3")
        self.assertEqual(ran.out, expected)
        ran = self.run_script("build/tool", "cargo-x", "1.2.3").ends(0)
        self.assertEqual((ran.out, ran.err), (expected, ""))
        self.assertEqual(len(self.called()), 1)

    def test_another_version_is_built_into_the_configured_cache(self):
        self.stand_in("cargo", self.INSTALL)
        cache = self.folder / "cache"
        self.run_script("build/tool", "cargo-x", "1.2.3", RCRT_CACHE=cache).ends(0)
        self.run_script("build/tool", "cargo-x", "1.2.4", RCRT_CACHE=cache).ends(0)
        self.assertEqual([call.split()[-1] for call in self.called()], ["cargo-x@1.2.3", "cargo-x@1.2.4"])

    def test_a_failed_build_and_wrong_arguments_are_reported(self):
        self.stand_in("cargo", "echo 'error: no such crate' >&2; exit 101")
        ran = self.run_script("build/tool", "cargo-x", "1.2.3").ends(1).says("no such crate", "cargo-x 1.2.3 cannot be built")
        self.assertEqual(ran.out, "")
        (self.bin / "cargo").unlink()
        self.run_script("build/tool", "cargo-x", "1.2.3").ends(1).says("cargo-x 1.2.3 cannot be built")
        self.run_script("build/tool", "cargo-x").ends(2).says("build/tool NAME VERSION")


class Audit(Stage):
    def setUp(self):
        super().setUp()
        self.stand_in("tool", f'echo "{self.bin}/$1"', at=self.tree / "build")
        self.stand_in("cargo", "echo 'serde v1 derive (/x)'")
        self.stand_in("cargo-machete")
        self.stand_in("cargo-deny")

    def audit(self):
        return self.run_script("build/audit")

    def test_good_dependencies_pass(self):
        self.audit().ends(0)
        self.assertEqual(sum("check licenses" in call for call in self.called()), 2)
        self.assertTrue(any("check --disable-fetch advisories" in call for call in self.called()))

    def test_each_finding_fails_and_the_rest_is_still_checked(self):
        self.stand_in("cargo-machete", "echo 'unused: x'; exit 1")
        self.audit().ends(1).says("unused: x", "Advisories:")
        self.stand_in("cargo-machete")
        self.stand_in("cargo-deny", 'case "$*" in *licenses*) echo "bad licence"; exit 1 ;; esac')
        self.audit().ends(1).says("bad licence", "Advisories:")
        self.stand_in("cargo-deny", 'case "$*" in *advisories*) echo "RUSTSEC-1"; exit 1 ;; esac')
        self.audit().ends(1).says("RUSTSEC-1")

    def test_a_dependency_that_is_compiled_twice_is_named(self):
        self.stand_in("cargo", 'case "$*" in *rcrt*) echo "serde v1 derive" ;; *) echo "serde v1 derive,rc" ;; esac')
        self.audit().ends(1).says("serde v1 derive")

    def test_dependencies_that_cannot_be_listed_fail(self):
        self.stand_in("cargo", "echo 'error: the lock file' >&2; exit 101")
        self.audit().ends(1).says("error: the lock file", "cargo cannot list the dependencies", "Advisories:")

    def test_without_the_list_of_advisories_it_says_so_and_passes(self):
        self.stand_in("cargo-deny", 'case "$*" in *"fetch db"*) echo "fatal: no network"; exit 1 ;; esac')
        self.audit().ends(0).says("advisories not checked", "fatal: no network")

    def test_a_tool_that_cannot_be_built_stops_it(self):
        self.stand_in("tool", "echo 'tool: cannot be built' >&2; exit 1", at=self.tree / "build")
        self.audit().ends(1).says("tool: cannot be built")


class Describe(Stage):
    def setUp(self):
        super().setUp()
        self.stand_in("cargo", "echo '{}'")
        self.stand_in("python3")
        self.stand_in("npm")
        self.write("sdk/openapi.json", "old")
        (self.tree / "sdk/typescript").mkdir()

    def test_it_writes_the_document_and_the_types_of_both_clients(self):
        self.run_script("build/describe").ends(0)
        self.assertEqual((self.tree / "sdk/openapi.json").read_text(), "{}\n")
        self.assertEqual(self.called()[1:], ["python3 sdk/python/generate.py", "npm ci --no-audit --no-fund", "npm run --silent types"])

    def test_installed_packages_are_not_installed_again(self):
        (self.tree / "sdk/typescript/node_modules").mkdir()
        self.run_script("build/describe").ends(0)
        self.assertFalse(any(call.startswith("npm ci") for call in self.called()))

    def test_a_server_that_does_not_compile_leaves_the_old_document(self):
        self.stand_in("cargo", "echo half; echo 'error: it does not compile' >&2; exit 101")
        self.run_script("build/describe").ends(101).says("does not compile")
        self.assertEqual([path.name for path in (self.tree / "sdk").iterdir() if path.is_file()], ["openapi.json"])
        self.assertEqual((self.tree / "sdk/openapi.json").read_text(), "old")

    def test_without_npm_nothing_starts(self):
        (self.bin / "npm").unlink()
        self.run_script("build/describe").ends(1).says("npm is missing")
        self.assertEqual(self.called(), [])


if __name__ == "__main__":
    unittest.main()
