"""build/fresh once it has a root: the users, the commands, the mounts and the folders."""

import unittest

from fresh_stage import UP, RunsStage


class Runs(RunsStage):
    def test_both_commands_run_as_both_users(self):
        ran = self.fresh().ends(0).says("== as root", "== as user", "3 passed", '"status": "success"', "Response in")
        times = [line.split(" in ")[0].strip() for line in ran.out.splitlines() if line.startswith("  make")]
        self.assertEqual(times, [f"make {command} as {user}: done" for user in ("root", "user") for command in ("up", "test")])
        ran.says("On 2 processors, Debian 12", "commit abc")
        self.assertEqual([call for call in self.called() if call in ("make up", "make test")], ["make up", "make test"] * 2)

    def test_a_folder_of_its_own_is_removed(self):
        self.fresh("root", "test").ends(0)
        self.assertEqual(list(self.folder.glob("rcrt-fresh*")), [])
        self.assertEqual(self.mounts.read_text(), "proc /proc proc rw 0 0\n")

    def test_one_user_and_one_command_can_be_chosen(self):
        ran = self.fresh("user", "test").ends(0)
        self.assertNotIn("as root", str(ran))
        self.assertEqual([call for call in self.called() if call in ("make up", "make test")], ["make test"])
        self.assertTrue(any("/useradd " in call and call.endswith(" tester") for call in self.called()))
        self.assertTrue(any(call.endswith("chown -R tester:tester /home/tester") for call in self.called()), self.called())

    def test_root_is_not_created_as_a_user(self):
        self.fresh("root", "test").ends(0)
        self.assertFalse(any("/useradd " in call for call in self.called()))
        self.assertTrue(any(call.endswith("chown -R root:root /root") for call in self.called()))

    def test_a_failed_command_fails_the_whole_and_the_rest_still_runs(self):
        self.make(UP, "echo 'failed: a::b'; echo 'the reason'; exit 101")
        ran = self.fresh().ends(1).says("failed: a::b", "the reason", "some steps failed")
        for user in ("root", "user"):
            ran.says(f"make up as {user}: done", f"make test as {user}: FAILED")

    def test_each_user_gets_an_unused_root_with_mounts(self):
        self.make(UP, "touch /dev/null")
        self.fresh("both", "test").ends(0)
        roots = {call.split()[-1].rsplit("/", 1)[0] for call in self.called() if call.startswith("mount -t proc")}
        self.assertEqual({root.rsplit("/", 1)[-1] for root in roots}, {"root", "user"})
        for root in roots:
            for mount in (f"mount -t proc proc {root}/proc", f"mount --rbind /sys {root}/sys", f"mount --rbind /dev {root}/dev"):
                self.assertIn(mount, self.called())
            self.assertIn(f"mount --bind {self.toolchain} {root}/opt/rust", self.called())
            self.assertIn(f"mount -o remount,bind,ro {root}/opt/rust", self.called())
        self.assertEqual(self.seen("etc/is"), "bare\n")
        self.assertFalse((self.folder / "seen/.complete").exists())

    def test_the_clone_has_no_remote(self):
        self.fresh("root", "test").ends(0)
        (clone,) = (call for call in self.called() if "clone" in call)
        self.assertTrue(clone.startswith(f"git clone --quiet --no-hardlinks file://{self.tree} "), clone)
        self.assertTrue(any(call.endswith("/root/root/rcrt remote remove origin") for call in self.called()))

    def test_a_named_folder_is_kept_with_the_bare_root(self):
        kept = self.folder / "kept"
        self.settings["FRESH_DIR"] = kept
        self.fresh("root", "test").ends(0).says("Making a bare Debian 12")
        self.assertEqual([path.name for path in kept.iterdir() if path.is_dir()], ["bare"])
        again = self.fresh("root", "test").ends(0)
        self.assertNotIn("Making", str(again))
        # One that was not finished is made again.
        (kept / "bare/.complete").unlink()
        self.fresh("root", "test").ends(0).says("Making a bare Debian 12")

    def test_a_folder_can_be_relative_or_behind_a_link(self):
        (self.folder / "real").mkdir()
        (self.tree / "link").symlink_to(self.folder / "real")
        for name in ("link", "sub/folder"):
            self.settings["FRESH_DIR"] = name
            self.fresh("root", "test").ends(0)
            self.assertEqual(self.mounts.read_text(), "proc /proc proc rw 0 0\n", name)

    def test_nothing_is_removed_through_a_mount_that_remains(self):
        self.stand_in("umount", "exit 32")
        self.fresh("root", "test").ends(32)
        (left,) = self.folder.glob("rcrt-fresh*")
        self.assertTrue((left / "root/opt/rust").exists())

    def test_an_interrupted_run_unmounts_and_removes_everything(self):
        self.stand_in("unshare", 'kill -TERM "$PPID"')
        self.fresh("root", "test").ends(130)
        self.assertEqual(list(self.folder.glob("rcrt-fresh*")), [])
        self.assertEqual(self.mounts.read_text(), "proc /proc proc rw 0 0\n")

    def test_node_is_added_only_if_requested(self):
        for node, packages in (("0", "python3-pip,mount"), ("1", "python3-pip,mount,nodejs,npm")):
            self.calls.write_text("")
            self.settings["NODE"] = node
            self.fresh("root", "test").ends(0)
            (made,) = (call for call in self.called() if call.startswith("mmdebstrap"))
            self.assertIn(f"{packages} bookworm ", made)


if __name__ == "__main__":
    unittest.main()
