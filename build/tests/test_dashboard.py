"""build/dashboard and build/dashboard-pictures: what they need, install and run."""

import unittest

from stage import Stage


class Dashboard(Stage):
    NPM = """if [ "$1" = --version ]; then echo "${NPM_VERSION:-11.2.0}"; fi
[ "$1" != "${FAILS:-}" ] || { echo "$1 failed" >&2; exit 1; }
[ "$*" != "run --silent build" ] || mkdir build"""

    def setUp(self):
        super().setUp()
        self.write("dashboard/package-lock.json", "{}\n")
        self.write("dashboard/build/of-before", "")
        (self.tree / "dashboard/node_modules").mkdir()
        self.stand_in("npm", self.NPM)
        self.stand_in("npx")
        self.stand_in("python3")

    def dashboard(self, *arguments, **settings):
        return self.run_script("build/dashboard", *arguments, **settings)

    def test_it_checks_builds_and_packs(self):
        self.dashboard("--check").ends(0)
        self.assertEqual(
            self.called(),
            ["npm --version", "npm ci --no-audit --no-fund", "npm run --silent check", "npm run --silent build", "python3 pack.py --check"],
        )
        self.assertFalse((self.tree / "dashboard/build/of-before").exists())

    def test_packages_are_installed_again_only_after_a_change_of_the_lock_file(self):
        for lock, installs in (("{}\n", 1), ("{}\n", 1), ('{"other": 1}\n', 2)):
            self.write("dashboard/package-lock.json", lock)
            self.dashboard().ends(0)
            self.assertEqual(sum(" ci " in call for call in self.called()), installs)

    def test_an_old_npm_is_replaced_for_the_installation(self):
        self.dashboard(NPM_VERSION="10.8.2").ends(0)
        self.assertIn("npx --yes npm@11 ci --no-audit --no-fund", self.called())
        self.assertNotIn("npm ci --no-audit --no-fund", self.called())

    def test_a_step_that_fails_ends_it(self):
        self.dashboard(FAILS="ci").ends(1).says("ci failed")
        self.assertFalse((self.tree / "dashboard/node_modules/.installed").exists())
        self.dashboard(FAILS="run").ends(1).says("run failed")
        self.assertFalse(any(call.startswith("python3") for call in self.called()))

    def test_a_missing_program_is_named(self):
        for name in ("python3", "npm"):
            (self.bin / name).unlink()
            self.dashboard().ends(1).says(f"dashboard: {name} is missing")
        self.assertEqual(self.called(), [])


class Pictures(Stage):
    def setUp(self):
        super().setUp()
        self.stand_in("test-dashboard", 'echo "pictures in $RCRT_PICTURES"', at=self.tree / "build")

    def test_the_tests_of_the_dashboard_write_the_pictures(self):
        self.stand_in("pngquant")
        self.run_script("build/dashboard-pictures", "the-binary").ends(0).says(f"pictures in {self.tree}/docs/images/dashboard")
        self.assertEqual(self.called(), ["test-dashboard the-binary"])

    def test_without_pngquant_it_names_the_package(self):
        self.run_script("build/dashboard-pictures").ends(1).says("pngquant is missing (Debian: pngquant)")
        self.assertEqual(self.called(), [])


if __name__ == "__main__":
    unittest.main()
