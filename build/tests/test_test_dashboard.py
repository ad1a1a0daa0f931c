"""build/test-dashboard: when it is skipped, and what it runs."""

import unittest

from stage import Stage

NODE = 'exit "${OLD:-0}"'


class Dashboard(Stage):
    def setUp(self):
        super().setUp()
        self.program = self.stand_in("rcrt")
        for name in ("src/main.ts", "tests/x.ts", "public/x.svg", "dist/files.rs", "package.json", "vite.config.ts", "svelte.config.js", "index.html", "pack.py", ".npmrc"):
            self.write(f"dashboard/{name}", "one\n")
        for name in ("src/index.ts", "package.json"):
            self.write(f"sdk/typescript/{name}", "one\n")
        self.stand_in("dashboard", at=self.tree / "build")
        for name in ("npm", "npx", "chromium"):
            self.stand_in(name)
        self.stand_in("node", NODE)

    def dashboard(self, *arguments, **settings):
        return self.run_script("build/test-dashboard", self.program, *arguments, **settings)

    def test_it_compares_the_built_files_and_runs_the_tests(self):
        self.dashboard("live").ends(0)
        self.assertEqual(self.called()[-2:], ["dashboard --check", "npx --no-install playwright test live"])
        # Nothing is written into the checkout.
        self.assertFalse((self.tree / "dashboard/build").exists())

    def test_outdated_built_files_fail_it(self):
        self.stand_in("dashboard", "echo 'run build/dashboard'; exit 1", at=self.tree / "build")
        self.dashboard().ends(1).says("run build/dashboard")
        self.assertNotIn("npx", " ".join(self.called()))

    def test_without_chromium_only_the_browser_is_skipped_but_not_in_ci(self):
        (self.bin / "chromium").unlink()
        self.dashboard().ends(0).says("skipped in a browser, because Chromium is not installed")
        self.assertIn("dashboard --check", self.called())
        self.dashboard(CI="true").ends(1).says("Chromium is not installed")
        self.assertNotIn("npx", " ".join(self.called()))

    def test_without_a_new_node_it_is_skipped_but_not_in_ci(self):
        self.dashboard(OLD=1).ends(0).says("skipped, because this machine has no Node 20.19")
        self.dashboard(OLD=1, CI="true").ends(1).says("no Node 20.19")
        self.assertNotIn("dashboard --check", self.called())

    def test_without_the_program_it_says_how_to_build_it(self):
        self.run_script("build/test-dashboard", self.folder / "nowhere").ends(1).says("build it first")


if __name__ == "__main__":
    unittest.main()
