"""build/fresh: what it says where it cannot work. What it is for is seen by running it."""

import unittest

from stage import Stage


class Fresh(Stage):
    def setUp(self):
        super().setUp()
        self.stand_in("id", "echo 0")
        self.stand_in("uname", "echo Linux")
        self.stand_in("git")
        self.stand_in("umount")
        # Within the namespace already: nothing is mounted before a root is there.
        self.stand_in("unshare")
        self.toolchain = self.folder / "toolchain"
        self.stand_in("cargo", at=self.toolchain / "bin")
        self.stand_in("rustc", at=self.toolchain / "bin")
        (self.bin / "cargo").symlink_to(self.toolchain / "bin/cargo")
        self.settings = {"FRESH_INSIDE": 1}

    def fresh(self, *words):
        return self.run_script("build/fresh", *words, **self.settings)

    def test_wrong_arguments_are_told(self):
        self.fresh("everybody").ends(2).says("root, user or both, not 'everybody'")
        self.fresh("root", "down").ends(2).says("up, test or both, not 'down'")

    def test_who_is_not_root_is_told(self):
        self.stand_in("id", "echo 1000")
        self.fresh().ends(1).says("run it as root")

    def test_another_system_is_told(self):
        self.stand_in("uname", "echo Darwin")
        self.fresh().ends(1).says("it needs Linux")

    def test_without_a_toolchain_or_namespaces_it_says_so(self):
        (self.toolchain / "bin/rustc").unlink()
        self.fresh().ends(1).says("has no bin/rustc")
        (self.bin / "cargo").unlink()
        self.fresh().ends(1).says("no Rust here")
        (self.bin / "unshare").unlink()
        self.fresh().ends(1).says("unshare is missing")

    def test_it_goes_on_in_a_namespace_of_its_own(self):
        self.settings = {}
        self.stand_in("unshare", 'echo "inside $FRESH_INSIDE"')
        self.fresh("user", "test").ends(0).says("inside 1")
        self.assertTrue(self.called()[-1].endswith("build/fresh user test"), self.called())

    def test_without_a_way_to_make_a_root_it_says_so(self):
        self.fresh().ends(1).says("neither mmdebstrap nor debootstrap")
        self.stand_in("apt-get", "echo 'E: no network' >&2; exit 100")
        self.fresh().ends(1).says("E: no network", "mmdebstrap cannot be installed")

    def test_a_root_that_cannot_be_made_is_told_and_leaves_nothing(self):
        self.stand_in("mmdebstrap", "echo 'E: mirror is away' >&2; exit 25")
        self.fresh().ends(1).says("E: mirror is away", "DEBIAN_MIRROR")
        self.assertEqual([path.name for path in self.folder.glob("rcrt-fresh*")], [])

    def test_what_is_not_committed_is_mentioned(self):
        self.stand_in("git", "echo ' M README.md'")
        self.fresh().ends(1).says("not committed")


if __name__ == "__main__":
    unittest.main()
