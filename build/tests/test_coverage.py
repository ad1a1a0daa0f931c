"""Each script of build/ has a test."""

import unittest
from pathlib import Path

BUILD = Path(__file__).resolve().parent.parent


class Coverage(unittest.TestCase):
    def test_each_script_is_named_in_a_test(self):
        tests = "".join(test.read_text() for test in (BUILD / "tests").glob("test_*.py"))
        scripts = [path.name for path in BUILD.iterdir() if path.is_file()]
        self.assertGreater(len(scripts), 10)
        self.assertEqual([name for name in scripts if name not in tests and Path(name).stem not in tests], [])


if __name__ == "__main__":
    unittest.main()
