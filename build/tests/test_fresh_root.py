"""build/fresh with real namespaces and a small root: what a command sees there. Needs privileges."""

import os
import shutil
import subprocess
import unittest
import uuid
from pathlib import Path

from fresh_stage import FreshStage

PROGRAMS = "bash cat chown env grep id ls mkdir mount rmdir setpriv sleep tail test umount".split()

PRIVILEGED = "chroot mount nproc pivot_root setpriv umount unshare".split()


def is_permitted():
    """Whether this machine lets a test mount in its own namespace."""
    if os.geteuid() != 0 or not all(shutil.which(name) for name in [*PROGRAMS, *PRIVILEGED]):
        return False
    mount = "mount -t tmpfs x /mnt && mkdir /mnt/a && mount --bind /mnt/a /mnt/a"
    tried = subprocess.run(["unshare", "--mount", "--pid", "--fork", "sh", "-c", mount], capture_output=True)
    return tried.returncode == 0


@unittest.skipUnless(is_permitted(), "this machine gives a test no namespaces with mounts")
class Root(FreshStage):
    def setUp(self):
        super().setUp()
        for name in (*PRIVILEGED, "id", "uname"):
            (self.bin / name).unlink(missing_ok=True)
            (self.bin / name).symlink_to(shutil.which(name))
        self.stand_in("git", 'case "$*" in *clone*) mkdir -p "${@: -1}" ;; esac')
        # In this temporary folder, and removed with it.
        self.work = self.folder / "work"
        self.settings = {"FRESH_DIR": self.work}
        self.bare = self.work / "bare"
        self.make_root()

    def make_root(self):
        for name in ("dev", "etc", "proc", "root", "sys", "tmp", "usr/bin", "usr/sbin"):
            (self.bare / name).mkdir(parents=True)
        (self.bare / "bin").symlink_to("usr/bin")
        (self.bare / "etc/passwd").write_text("root:x:0:0::/root:/bin/bash\n")
        (self.bare / "etc/group").write_text("root:x:0:\n")
        for name in PROGRAMS:
            program = Path(shutil.which(name)).resolve()
            shutil.copy2(program, self.bare / "usr/bin" / name)
            for word in subprocess.run(["ldd", program], capture_output=True, text=True).stdout.split():
                if word.startswith("/"):
                    target = self.bare / word.lstrip("/")
                    target.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy2(word, target)
        self.put("sbin/useradd", "echo tester:x:1000:1000::/home/tester:/bin/bash >>/etc/passwd; echo tester:x:1000: >>/etc/group; mkdir -p /home/tester")
        (self.bare / ".complete").touch()

    def put(self, name, script):
        path = self.bare / "usr" / name
        path.write_text(f"#!/bin/bash\nPATH=/usr/bin\n{script}\n")
        path.chmod(0o755)

    def shown(self, script, user="user"):
        """What a command prints when it runs in the root as that user."""
        self.put("bin/make", f"echo sdk: $({script})")
        ran = self.fresh(user, "test").ends(0)
        (line,) = (line for line in ran.out.splitlines() if line.startswith("sdk: "))
        return line.removeprefix("sdk: ").split()

    def test_it_runs_as_the_user_without_more_groups(self):
        self.assertEqual(self.shown("id -un; id -u; id -G; pwd"), ["tester", "1000", "1000", "/home/tester/rcrt"])
        self.assertEqual(self.shown("id -un; id -G; pwd", "root"), ["root", "0", "/root/rcrt"])

    def test_it_sees_only_the_root(self):
        expected = sorted([*(path.name for path in self.bare.iterdir() if path.name != ".complete"), "home", "opt"])
        self.assertEqual(sorted(self.shown("ls -A /")), expected)

    def test_it_sees_only_its_own_processes(self):
        self.assertEqual(set(self.shown("cat /proc/[0-9]*/comm")), {"bash", "make", "cat"})

    def test_the_toolchain_cannot_be_changed(self):
        said = self.shown("echo x >/opt/rust/bin/rustc; echo ended $?", "root")
        self.assertEqual(said, ["ended", "1"])
        self.assertNotEqual((self.toolchain / "bin/rustc").read_text(), "x\n")

    def test_no_process_and_no_mount_remains(self):
        mark = str(900_000 + uuid.uuid4().int % 90_000)
        self.shown(f"sleep {mark} >/dev/null 2>&1 & echo started")
        lines = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]
        self.assertFalse([line for line in lines if mark.encode() in line])
        self.assertNotIn(str(self.folder), Path("/proc/self/mounts").read_text())
        self.assertEqual([path.name for path in self.work.iterdir() if path.is_dir()], ["bare"])


if __name__ == "__main__":
    unittest.main()
