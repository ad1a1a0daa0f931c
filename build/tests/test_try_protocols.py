"""The scripts that try clients and servers of A2A and MCP: which program they test."""

import unittest

from stage import Stage


SCRIPTS = (("try-a2a", []), ("try-a2a-kit", ["."]), ("try-mcp-clients", []), ("try-mcp-servers", []))


class TryProtocols(Stage):
    def setUp(self):
        super().setUp()
        self.real_python()

    def test_without_a_program_they_say_where_it_should_be(self):
        for script, arguments in SCRIPTS:
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
