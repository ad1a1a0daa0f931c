"""build/fresh until it has a root: its arguments, its requirements, and the mirror."""

import unittest

from fresh_stage import FreshStage


class Fresh(FreshStage):
    def test_wrong_arguments_are_reported(self):
        self.fresh("everybody").ends(2).says("root, user or both, not 'everybody'")
        self.fresh("root", "down").ends(2).says("up, test or both, not 'down'")

    def test_another_user_than_root_is_refused(self):
        self.stand_in("id", "echo 1000")
        self.fresh().ends(1).says("run it as root")

    def test_another_system_is_refused(self):
        self.stand_in("uname", "echo Darwin")
        self.fresh().ends(1).says("it needs Linux")

    def test_without_a_toolchain_or_namespaces_it_says_so(self):
        (self.toolchain / "bin/rustc").unlink()
        self.fresh().ends(1).says("has no bin/rustc")
        (self.bin / "cargo").unlink()
        self.fresh().ends(1).says("no Rust here")
        (self.bin / "unshare").unlink()
        self.fresh().ends(1).says("unshare is missing")

    def test_it_continues_in_its_own_namespace(self):
        self.settings = {}
        self.stand_in("unshare", 'echo "inside $FRESH_INSIDE"')
        self.fresh("user", "test").ends(0).says("inside 1")
        self.assertTrue(self.called()[-1].endswith("build/fresh user test"), self.called())

    def test_without_a_way_to_make_a_root_it_says_so(self):
        self.fresh().ends(1).says("neither mmdebstrap nor debootstrap")
        self.stand_in("apt-get", "echo 'E: no network' >&2; exit 100")
        self.fresh().ends(1).says("E: no network", "mmdebstrap cannot be installed")

    def test_a_root_that_cannot_be_made_is_reported_and_leaves_nothing(self):
        self.stand_in("mmdebstrap", "echo 'E: mirror is away' >&2; exit 25")
        self.fresh().ends(1).says("E: mirror is away", "DEBIAN_MIRROR")
        self.assertEqual([path.name for path in self.folder.glob("rcrt-fresh*")], [])

    def asked(self, **settings):
        """The mirror from which the root is made."""
        self.stand_in("mmdebstrap", "exit 25")
        self.calls.write_text("")
        self.settings |= settings
        self.fresh().ends(1)
        return next(call.split()[-1] for call in self.called() if call.startswith("mmdebstrap "))

    def test_the_mirror_is_that_of_apt(self):
        self.assertEqual(self.asked(), "http://mirror.test/debian")
        self.assertEqual(self.asked(DEBIAN_MIRROR="http://named.test"), "http://named.test")

    def test_both_forms_of_sources_are_read(self):
        for name, text in {
            "sources.list": "# deb http://off.test bookworm main\ndeb http://one.test/debian bookworm main contrib\n",
            "other.list": "deb-src http://source.test bookworm main\ndeb [arch=amd64 signed-by=/k] http://one.test/debian bookworm main\n",
            "late.sources": "Types: deb\nURIs: http://other.test\nSuites: bookworm-security\nComponents: main\n\n"
            "# ours\nTypes: deb-src\n deb\nURIs:\n http://one.test/debian\n http://two.test\nSuites: bookworm-updates bookworm\n"
            "Components: contrib main\n",
            "off.sources": "Enabled: no\nTypes: deb\nURIs: http://off.test\nSuites: bookworm\nComponents: main\n\n"
            "Types: deb\nURIs: http://one.test/debian\nSuites: bookworm\nComponents: main\n",
        }.items():
            with self.subTest(name):
                self.sources(name, text)
                self.assertEqual(self.asked(), "http://one.test/debian")

    def test_the_mirror_of_another_release_counts_only_on_debian(self):
        self.sources("sources.list", "deb http://one.test/debian trixie main\n")
        release = self.folder / "os-release"
        release.write_text("ID=ubuntu\nVERSION_CODENAME=trixie\n")
        self.fresh().ends(1).says("no mirror of Debian 12 is known", "DEBIAN_MIRROR")
        release.write_text("ID=debian\nVERSION_CODENAME=trixie\n")
        self.assertEqual(self.asked(), "http://one.test/debian")

    def test_long_sources_are_read_to_their_end(self):
        lines = "deb http://one.test/debian bookworm main\n" + "deb http://packages.test/tools tools-bookworm main\n" * 4000
        self.sources("sources.list", lines)
        self.assertEqual(self.asked(), "http://one.test/debian")

    def test_without_a_mirror_it_says_so(self):
        for text in ("", "deb http://packages.test/tools tools-bookworm main\n", "deb cdrom:[Debian]/ bookworm main\n"):
            self.sources("sources.list", text)
            self.fresh().ends(1).says("no mirror of Debian 12 is known", "DEBIAN_MIRROR")

    def test_a_mirrors_password_is_not_shown(self):
        self.sources("sources.list", "deb http://me:s3cret@one.test/debian bookworm main\n")
        self.stand_in("mmdebstrap", "exit 25")
        ran = self.fresh().ends(1).says("//one.test/debian")
        self.assertNotIn("s3cret", str(ran))

    def test_uncommitted_changes_are_mentioned(self):
        self.stand_in("git", "echo ' M README.md'")
        self.fresh().ends(1).says("not committed")


if __name__ == "__main__":
    unittest.main()
