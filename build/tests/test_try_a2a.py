"""build/try-a2a and build/try-a2a-kit: which program they test."""

import unittest

from stage import Stage


class TryA2a(Stage):
    def setUp(self):
        super().setUp()
        self.real_python()

    def test_without_a_program_they_say_where_it_should_be(self):
        for script, arguments in (("try-a2a", []), ("try-a2a-kit", ["."])):
            with self.subTest(script):
                self.run_script(f"build/{script}", *arguments).ends(1).says("target/debug/rcrt does not exist")
                elsewhere = self.run_script(f"build/{script}", *arguments, CARGO_TARGET_DIR="/elsewhere")
                elsewhere.ends(1).says("/elsewhere/debug/rcrt does not exist")
                self.run_script(f"build/{script}", "--binary", "/no/rcrt", *arguments).ends(1).says("/no/rcrt does not exist")

    def test_the_kit_needs_its_work_tree(self):
        program = self.stand_in("rcrt", "exit 3")
        self.run_script("build/try-a2a-kit", "--binary", program, "/nothing").ends(2).says("/nothing is not a work tree")


if __name__ == "__main__":
    unittest.main()
