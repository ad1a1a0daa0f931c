"""A copy of the scripts in a separate folder, with fake programs for cargo, npm and the like on the PATH."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

# In the background SIGINT is ignored, and the scripts under test would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).resolve().parent.parent.parent
# What the scripts can expect on every system. Everything else is fake or missing.
SYSTEM = """awk basename bash cat chmod cmp comm cp cut date diff dirname env expand false find grep head id install kill ln ls mkdir
mktemp mv printf readlink realpath rm rmdir sed seq sh sha256sum sleep sort tail tee timeout touch tr true uname wc""".split()


class Stage(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="rcrt-build-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.tree = self.folder / "tree"
        self.bin = self.folder / "bin"
        self.home = self.folder / "home"
        for made in (self.tree, self.bin, self.home):
            made.mkdir()
        self.calls = self.folder / "calls"
        self.calls.touch()
        for name in SYSTEM:
            if found := shutil.which(name):
                (self.bin / name).symlink_to(found)
        shutil.copytree(ROOT / "build", self.tree / "build", ignore=shutil.ignore_patterns("tests"))

    def copy(self, *names):
        """Puts files and folders of the checkout into the copy."""
        for name in names:
            source, target = ROOT / name, self.tree / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, target)
            else:
                shutil.copy2(source, target)

    def write(self, name, text):
        path = self.tree / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def real_python(self):
        (self.bin / "python3").symlink_to(sys.executable)

    def stand_in(self, name, script="exit 0", at=None):
        """A program that records how it was called, then runs the shell script."""
        path = (at or self.bin) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.write_text(f'#!{shutil.which("bash")}\nprintf "%s\\n" "{name} $*" >>"{self.calls}"\n{script}\n')
        path.chmod(0o755)
        return path

    def called(self):
        return self.calls.read_text().splitlines()

    def run_script(self, *command, **settings):
        environment = {"PATH": str(self.bin), "HOME": str(self.home), "TMPDIR": str(self.folder), "LC_ALL": "C.UTF-8"}
        environment |= {name: str(value) for name, value in settings.items()}
        ran = subprocess.run(
            [str(word) for word in command], cwd=self.tree, env=environment, capture_output=True, text=True, timeout=120
        )
        return Ran(self, ran)


class Ran:
    def __init__(self, test, ran):
        self.test, self.status, self.out, self.err = test, ran.returncode, ran.stdout, ran.stderr

    def __str__(self):
        return f"status {self.status}\n-- stdout\n{self.out}\n-- stderr\n{self.err}"

    def ends(self, status):
        self.test.assertEqual(self.status, status, self)
        # A failure must print why.
        self.test.assertTrue(status == 0 or (self.out + self.err).strip(), self)
        return self

    def says(self, *words):
        for word in words:
            self.test.assertIn(word, self.out + self.err, self)
        return self

    def is_silent(self):
        self.test.assertEqual((self.out, self.err), ("", ""))
        return self

    def sentences(self, count):
        """Exactly this many sentences on stderr, and no traceback."""
        text = self.err.strip()
        self.test.assertEqual(len(text.splitlines()), 1, self)
        self.test.assertEqual(text.count(". ") + text.endswith("."), count, self)
        return self
