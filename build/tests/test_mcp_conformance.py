"""build/mcp-conformance: what it starts ends with it."""

import unittest

from stage import Stage

SUITE = "node_modules/@modelcontextprotocol/conformance/dist/index.js"
NPM = f"""mkdir -p {SUITE.rsplit("/", 1)[0]}
touch {SUITE}"""
# Nobody listens at its address, so the tools cannot be published.
PROGRAM = """mkdir -p "$7"
echo t >"$7/token"
sleep 60 &
waiting=$!
trap 'echo ended >>"%s"; kill $waiting; exit 0' TERM
echo '{"api": "http://127.0.0.1:1/"}'
wait"""


class McpConformance(Stage):
    def setUp(self):
        super().setUp()
        self.real_python()
        self.copy("tests/mcp-conformance")
        self.stand_in("npm", NPM)

    def test_the_program_is_stopped_if_the_fixtures_cannot_be_published(self):
        program = self.stand_in("rcrt", PROGRAM % self.calls)
        self.run_script("build/mcp-conformance", "--binary", program).ends(1).says("Connection refused")
        self.assertIn("ended", self.called())

    def test_a_program_that_does_not_start_is_an_error_with_its_log(self):
        program = self.stand_in("rcrt", "echo 'no Postgres' >&2; exit 3")
        self.run_script("build/mcp-conformance", "--binary", program).ends(1).says("did not start", "no Postgres")

    def test_a_scenario_needs_its_side(self):
        self.run_script("build/mcp-conformance", "--scenario", "tools_call").ends(2).says("--side")


if __name__ == "__main__":
    unittest.main()
