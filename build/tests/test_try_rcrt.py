"""build/try-rcrt: its arguments, and which failures it accepts."""

import contextlib
import importlib.machinery
import importlib.util
import io
import sys
import tempfile
import unittest
from pathlib import Path

from stage import ROOT, Stage


# What the script itself imports is beside it.
sys.path.insert(0, str(ROOT / "build"))


def load():
    loader = importlib.machinery.SourceFileLoader("try_rcrt", str(ROOT / "build/try-rcrt"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("try_rcrt", loader))
    loader.exec_module(module)
    return module


script = load()

PAGE = """# Moving

### Tools

Words before the table:

| tool | error | second | reason |
|---|---|---|---|
| `chat` | `no key` | `other` | it needs `a key` |
| `sync` | `denied`, `host.example` | `x` | offline |
| `sync` | `timed out` | `x` | slow |

### Nothing

No table here.

## Next

| `later` | `text` | not in a section above |
"""


class Arguments(Stage):
    def setUp(self):
        super().setUp()
        self.real_python()
        self.copy("docs/moving-from-rcrt.md")
        for name in ("node", "npm"):
            self.stand_in(name)
        self.checkout = self.folder / "theirs"

    def make_checkout(self):
        (self.checkout / "bootstrap-breadcrumbs").mkdir(parents=True)
        (self.checkout / "bootstrap-breadcrumbs/bootstrap.js").touch()

    def attempt(self, *arguments, **settings):
        ran = self.run_script("build/try-rcrt", *arguments, **settings)
        self.assertNotIn("Traceback", ran.err)
        return ran

    def test_the_wrong_number_of_arguments_prints_the_usage(self):
        usage = "try-rcrt: usage: build/try-rcrt CHECKOUT [BINARY]\n"
        for arguments in ((), (self.checkout, "binary", "more")):
            self.assertEqual(self.attempt(*arguments).ends(2).err, usage)

    def test_a_folder_that_does_not_exist_is_named(self):
        self.attempt(self.checkout).ends(1).says(f"the folder {self.checkout} does not exist")

    def test_a_folder_of_another_project_is_refused(self):
        self.checkout.mkdir()
        self.attempt(self.checkout).ends(1).says(f"{self.checkout} has no bootstrap-breadcrumbs/bootstrap.js")

    def test_a_binary_that_was_not_built_is_named(self):
        self.make_checkout()
        self.attempt(self.checkout).ends(1).says(f"{self.tree}/target/debug/rcrt does not exist", "cargo build --bin rcrt")
        other = self.folder / "other"
        self.attempt(self.checkout, CARGO_TARGET_DIR=other).ends(1).says(f"{other}/debug/rcrt does not exist")
        self.attempt(self.checkout, other).ends(1).says(f"{other} does not exist;")

    def test_without_node_or_npm_no_server_starts(self):
        self.make_checkout()
        binary = self.stand_in("rcrt")
        for name in ("npm", "node"):
            (self.bin / name).unlink()
            self.attempt(self.checkout, binary).ends(1).says("Node 20 with npm is needed")
            self.stand_in(name)
        self.assertEqual(self.called(), [])

    def test_a_server_that_does_not_start_is_shown_with_its_log(self):
        self.make_checkout()
        binary = self.stand_in("rcrt", "echo 'error: the port is taken' >&2; exit 1")
        self.attempt(self.checkout, binary).ends(1).says("the server did not start", "error: the port is taken")
        self.assertIn("up --compat rcrt --auth open", self.called()[0])


class Silent(unittest.TestCase):
    """Tests of the functions themselves; what they print is captured."""

    def setUp(self):
        self.printed = io.StringIO()
        for redirect in (contextlib.redirect_stdout, contextlib.redirect_stderr):
            self.enterContext(redirect(self.printed))
        self.report = script.Report()

    def exceptions(self, heading="Tools", column=1, page=PAGE):
        return script.Exceptions(page, heading, column)

    def refused(self, *words, **how):
        with self.assertRaises(SystemExit) as ended:
            self.exceptions(**how)
        self.assertEqual(ended.exception.code, 1)
        for word in words:
            self.assertIn(word, self.printed.getvalue())


class Expecting(Silent):
    def test_a_failure_passes_with_all_texts_of_one_of_its_rows(self):
        known = self.exceptions()
        self.assertEqual(known.names(), {"chat", "sync"})
        self.assertTrue(known.expect("chat", "error: there is no key"))
        self.assertTrue(known.expect("sync", "denied: host.example"))
        self.assertTrue(known.expect("sync", "it timed out"))
        known.report_unseen(self.report)
        self.assertEqual(self.report.failed, [])

    def test_another_error_and_another_name_do_not_pass(self):
        known = self.exceptions()
        for name, error in [("chat", "timed out"), ("sync", "denied: other.example"), ("later", "text"), ("chat", "")]:
            self.assertFalse(known.expect(name, error), (name, error))

    def test_each_row_that_nothing_matched_is_a_failure(self):
        known = self.exceptions()
        known.expect("sync", "denied: other.example")
        known.expect("sync", "timed out")
        known.report_unseen(self.report)
        self.assertEqual(len(self.report.failed), 2)
        for failed, texts in zip(self.report.failed, ("chat with ['no key']", "sync with ['denied', 'host.example']")):
            self.assertIn(texts, failed)
            self.assertIn("correct or remove the row", failed)

    def test_the_column_is_the_requested_one(self):
        known = self.exceptions(column=2)
        self.assertFalse(known.expect("chat", "no key"))
        self.assertTrue(known.expect("chat", "other"))

    def test_a_section_without_rows_expects_nothing(self):
        known = self.exceptions("Nothing")
        self.assertEqual(known.names(), set())
        known.report_unseen(self.report)
        self.assertEqual(self.report.failed, [])

    def test_a_missing_section_and_a_row_without_error_text_are_refused(self):
        self.refused("has no section 'Absent'", heading="Absent")
        self.refused("the row `chat` of 'Tools' has no error text in column 2", page="### Tools\n| `chat` | any error | reason |\n")
        self.refused("no error text in column 3", page="### Tools\n| `chat` | `text` |\n", column=2)


class Server:
    """Answers calls and requests from a table."""

    def __init__(self, answers):
        self.answers, self.asked = answers, []

    def call(self, tool, arguments, _number):
        return self.answers[tool, arguments["n"]]

    def ask(self, method, path, body=None):
        self.asked.append((method, path))
        return self.answers[method, body]


class Examples(Silent):
    TOOLS = {"chat": {"examples": [{"input": {"n": 1}}, {"input": {"n": 2}}]}, "plain": {}}

    def attempt(self, first, second):
        answers = {("chat", 1): first, ("chat", 2): second}
        known = self.exceptions(page="### Tools\n| `chat` | `no key` | reason |\n")
        script.examples(Server(answers), self.TOOLS, known, self.report)
        return self.report.failed

    def test_success_and_the_expected_error_pass(self):
        self.assertEqual(self.attempt({"status": "success", "output": 1}, {"status": "error", "error": "no key"}), [])
        self.assertIn('ok    chat {"n": 1} -> 1', self.printed.getvalue())
        self.assertIn('known chat {"n": 2} -> error: no key', self.printed.getvalue())

    def test_a_listed_tool_that_fails_in_another_way_fails_the_run(self):
        failed = self.attempt({"status": "error", "error": "no key"}, {"status": "error", "error": "it crashed"})
        self.assertEqual(failed, ['chat {"n": 2} -> error: it crashed'])

    def test_a_listed_tool_that_succeeds_fails_the_run(self):
        good = {"status": "success", "output": 1}
        [failed] = self.attempt(good, good)
        self.assertIn("correct or remove the row", failed)


class Bootstrap(Silent):
    WORDS = "  Created: a note\n  ❌ Error loading bad.json: Unexpected token in JSON at position 3\n"

    def attempt(self, words):
        page = "### Files\n| `sub/bad.json` | `x` | `in JSON at position` | reason |\n"
        script.bootstrap_failures(words, self.exceptions("Files", 2, page), self.report)
        return self.report.failed

    def test_a_listed_file_that_cannot_be_read_passes(self):
        self.assertEqual(self.attempt(self.WORDS), [])

    def test_other_failures_fail_the_run(self):
        for line in ("❌ Error loading bad.json: EACCES", "❌ Error loading not-bad.json: x in JSON at position 3", "❌ Failed: A note"):
            self.report = script.Report()
            self.assertEqual(self.attempt(self.WORDS + line), [line])

    def test_a_file_that_is_read_after_all_fails_the_run(self):
        [failed] = self.attempt("")
        self.assertIn("correct or remove the row", failed)


class Files(Silent):
    def attempt(self, code, detail="at line 1", deleted=200):
        bad = (400, {"code": code, "detail": detail})
        server = Server({("POST", b"{}"): (201, {"id": "7"}), ("DELETE", None): (deleted, {}), ("POST", b"{"): bad})
        files = Path(self.enterContext(tempfile.TemporaryDirectory()))
        for name, text in (("good.json", "{}"), ("sub/bad.json", "{"), ("package.json", "-"), ("node_modules/x.json", "-")):
            (files / name).parent.mkdir(exist_ok=True)
            (files / name).write_text(text)
        known = self.exceptions("Files", page="### Files\n| `sub/bad.json` | `malformed_json`, `line 1` | reason |\n")
        script.each_file(server, files, known, self.report)
        self.assertEqual([method for method, _ in server.asked], ["POST", "DELETE", "POST"])
        return self.report.failed

    def test_a_listed_refusal_passes(self):
        self.assertEqual(self.attempt("malformed_json"), [])

    def test_a_listed_file_that_is_refused_for_another_reason_fails_the_run(self):
        refused, unseen = self.attempt("forbidden")
        self.assertEqual(refused, "sub/bad.json: refused, forbidden: at line 1")
        self.assertIn("correct or remove the row", unseen)

    def test_a_record_that_stays_fails_the_run(self):
        self.assertEqual(self.attempt("malformed_json", deleted=500), ["good.json: cannot be deleted (500)"])


class Page(Silent):
    def test_the_page_has_every_table_with_error_texts(self):
        for heading, column in (
            ("Files that are refused", 1),
            ("Files that are refused", 2),
            ("Tools that are not offered", 1),
            ("Examples that the program's own tools do not take", 1),
            ("Examples that do not succeed", 1),
        ):
            self.assertTrue(script.exceptions(heading, column).names(), heading)

    def test_the_page_has_the_scripts_own_text(self):
        known = script.exceptions("Examples that do not succeed")
        self.assertTrue(known.expect("scheduler", f"running: {script.NO_RESPONSE}"))

    def test_the_page_has_the_programs_own_texts(self):
        for heading, name, text, source in (
            ("Files that are refused", "templates/base-tool.json", "malformed_json", "crates/service/server/src/http/problem.rs"),
            ("Tools that are not offered", "calculator", "no-function-constructor", "crates/core/typescript/src/inspect.rs"),
            (
                "Examples that do not succeed",
                "openrouter_models_sync",
                "the operator denies requests to ",
                "crates/runtime/egress/src/fetch.rs",
            ),
            (
                "Examples that the program's own tools do not take",
                "calculator",
                "Unexpected character ",
                "bootstrap-breadcrumbs/tools-self-contained/calculator.ts",
            ),
        ):
            rows = script.exceptions(heading).rows
            self.assertTrue(any(row == name and text in listed for row, texts in rows for listed in texts), text)
            self.assertIn(text, (ROOT / source).read_text())


if __name__ == "__main__":
    unittest.main()
