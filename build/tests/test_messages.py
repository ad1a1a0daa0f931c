"""build/messages, and rules that every message keeps."""

import re
import subprocess
import unittest

from stage import ROOT

FORBIDDEN = re.compile(
    r"\b((?<!may or )may not|anew|is told|nobody may|stands in|is not taken|for good|the schema knows|is no (property|role))\b", re.IGNORECASE
)


class Messages(unittest.TestCase):
    def listed(self, *arguments):
        ran = subprocess.run([ROOT / "build/messages", *arguments], capture_output=True, text=True, check=True)
        return ran.stdout.splitlines()

    def test_messages_of_errors_findings_and_help_are_listed(self):
        lines = self.listed()
        self.assertGreater(len(lines), 2000)
        for part in (
            "crates/service/server/src/auth/access.rs:",
            "requires one of the roles: {}",
            "did you mean {meant}?",
            "How long to wait for a runner to load the tools; 0 does not wait",
        ):
            self.assertTrue(any(part in line for line in lines), part)

    def test_one_crate_can_be_listed(self):
        lines = self.listed("server")
        self.assertTrue(lines and all(line.startswith("crates/service/server/") for line in lines))

    def test_no_message_has_a_phrase_that_readers_did_not_understand(self):
        self.assertEqual([line for line in self.listed() if FORBIDDEN.search(line)], [])


if __name__ == "__main__":
    unittest.main()
