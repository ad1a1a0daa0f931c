"""build/try-skew: its arguments, and what it says when a version does not start."""

import unittest

from stage import Stage

VERSION = '[ "$1" = --version ] && echo "rcrt 1.0.0" && exit 0'


class Skew(Stage):
    def setUp(self):
        super().setUp()
        self.real_python()
        self.old = self.stand_in("rcrt", VERSION, at=self.folder / "old")
        self.new = self.stand_in("rcrt", f"# newer\n{VERSION}", at=self.folder / "new")

    def attempt(self, *arguments):
        ran = self.run_script("build/try-skew", *arguments)
        self.assertNotIn("Traceback", ran.err)
        return ran

    def test_other_arguments_print_the_usage(self):
        usage = "try-skew: usage: build/try-skew OLD NEW [server|runner|upgrade]\n"
        for arguments in ((), (self.old,), (self.old, self.new, "all"), (self.old, self.new, "server", "more")):
            self.assertEqual(self.attempt(*arguments).ends(2).err, usage)

    def test_a_program_that_does_not_exist_is_named(self):
        self.attempt(self.folder / "none", self.new).ends(1).says(f"{self.folder}/none does not exist, or is not a program")
        self.attempt(self.old, self.folder).ends(1).says(f"{self.folder} does not exist, or is not a program")

    def test_the_same_program_twice_is_refused(self):
        self.attempt(self.old, self.old).ends(1).says("OLD: rcrt 1.0.0", "both are the same program")

    def test_a_version_that_does_not_start_is_shown_with_its_log(self):
        self.new = self.stand_in("rcrt", f'{VERSION}\necho "the migrations cannot be applied" >&2; exit 1', at=self.folder / "new")
        self.attempt(self.old, self.new, "server").ends(1).says(
            "FAILED a runner of OLD with a server of NEW: it ended with status 1", "server.log", "the migrations cannot be applied"
        )
        self.assertEqual([call for call in self.called() if "server --listen" in call][0].split()[:3], ["rcrt", "server", "--listen"])


if __name__ == "__main__":
    unittest.main()
