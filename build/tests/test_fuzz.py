"""build/fuzz and build/fuzz-api."""

import unittest

from stage import Stage


class Fuzz(Stage):
    def setUp(self):
        super().setUp()
        self.stand_in("tool", f'echo "{self.bin}/cargo-fuzz"', at=self.tree / "build")
        self.stand_in("cargo")
        self.stand_in("c++")
        self.stand_in("nproc", "echo 2")
        self.stand_in("cargo-fuzz", 'case "$1" in run) echo "#9 DONE cov: 1" ;; esac')
        self.write("fuzz/Cargo.toml", '[[bin]]\nname = "hosts"\npath = "targets/hosts.rs"\n\n[[bin]]\npath = "targets/frames.rs"\n')
        self.write("fuzz/dictionaries/hosts.dict", "")

    def fuzz(self, *words, **settings):
        return self.run_script("build/fuzz", *words, **settings)

    def runs(self):
        return sorted((call for call in self.called() if call.startswith("cargo-fuzz run")), reverse=True)

    def test_every_target_is_run_with_its_dictionary(self):
        self.fuzz().ends(0).says("-- hosts, 15 s", "-- frames, 15 s", "#9 DONE")
        hosts, frames = self.runs()
        self.assertIn("-max_total_time=15", hosts)
        self.assertIn("-dict=fuzz/dictionaries/hosts.dict", hosts)
        self.assertNotIn("-dict", frames)

    def test_as_many_run_at_once_as_there_are_processors(self):
        # Each waits for the other.
        met = f"""case "$*" in
*" hosts "*) : >"{self.folder}/hosts"; until [ -e "{self.folder}/frames" ]; do :; done ;;
*" frames "*) : >"{self.folder}/frames"; until [ -e "{self.folder}/hosts" ]; do :; done ;;
esac
echo "#9 DONE of $4" """
        self.stand_in("cargo-fuzz", f'[ "$1" != run ] || {{ {met}; }}')
        self.fuzz().ends(0).says("-- hosts, 15 s\n#9 DONE", "-- frames, 15 s\n#9 DONE")
        (self.bin / "nproc").unlink()
        self.stand_in("cargo-fuzz", f'case "$*" in *" hosts "*) : >"{self.folder}/first" ;; *" frames "*) [ -e "{self.folder}/first" ] ;; esac')
        self.fuzz().ends(0)

    def test_some_of_them_for_longer(self):
        self.fuzz("300", "frames").ends(0).says("-- frames, 300 s")
        self.assertEqual(len(self.runs()), 1)

    def test_a_failure_is_shown_and_the_other_targets_still_run(self):
        self.stand_in("cargo-fuzz", 'case "$*" in *" hosts "*) echo "panicked at x"; exit 77 ;; esac')
        self.fuzz("1").ends(1).says("panicked at x", "fuzz: broken: hosts", "-- frames")

    def test_one_input_is_run_alone(self):
        self.fuzz("0", "hosts", "found").ends(0)
        self.assertTrue(self.runs()[0].endswith("hosts found"), self.runs())
        self.assertNotIn("max_total_time", self.runs()[0])

    def test_wrong_arguments_are_reported(self):
        self.fuzz("soon").ends(2).says("a number of seconds, not 'soon'")
        self.fuzz("0").ends(2).says("build/fuzz 0 TARGET FILE")
        self.assertEqual(self.called(), [])

    def test_an_outdated_lock_file_and_a_missing_compiler_are_reported(self):
        self.stand_in("cargo", "exit 101")
        self.fuzz("1").ends(1).says("cargo update --workspace --manifest-path fuzz/Cargo.toml")
        (self.bin / "c++").unlink()
        self.fuzz("1").ends(1).says("C++ compiler (Debian: g++)")

    def test_targets_that_do_not_compile_stop_it(self):
        self.stand_in("cargo-fuzz", "echo 'error: it does not compile' >&2; exit 1")
        self.fuzz("1").ends(1).says("does not compile")
        self.assertEqual(self.runs(), [])

    def test_a_tool_that_cannot_be_built_stops_it(self):
        self.stand_in("tool", "echo 'tool: cannot be built' >&2; exit 1", at=self.tree / "build")
        self.fuzz("1").ends(1).says("tool: cannot be built")


# What `rcrt token` prints, what `rcrt up` writes and where, and a healthy server.
SERVER = '''import http.server, os, sys
if sys.argv[1] == "token":
    print("RCRT_AGENT_ID=a" if "--agent" in sys.argv else "t")
    sys.exit()
class Well(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers()
    def log_message(self, *_): pass
data = sys.argv[sys.argv.index("--data") + 1]
os.makedirs(data)
server = http.server.HTTPServer(("127.0.0.1", 0), Well)
open(data + "/address", "w").write("http://127.0.0.1:%d\\n" % server.server_port)
open(data + "/token", "w").write("t")
print(os.environ.get("SAYS", ""), file=sys.stderr, flush=True)
print("Ctrl-C stops everything", flush=True)
server.serve_forever()
'''
REPORT = "Selected: {0}/{0}\\n Tested: {1}\\n= SUMMARY =\\nfine"


class FuzzApi(Stage):
    def setUp(self):
        super().setUp()
        self.real_python()
        (self.bin / "python3").rename(self.bin / "real-python3")
        # pip installs a schemathesis that prints what the test sets.
        self.stand_in(
            "python3",
            f"""case "$*" in
*"-m pip"*)
    while [ "$1" != --target ]; do shift; done
    mkdir -p "$2/schemathesis" && : >"$2/schemathesis/__init__.py"
    echo 'import os, sys
def schemathesis():
    print(os.environ["REPORT"].replace("\\\\n", chr(10))); sys.exit(int(os.environ.get("ENDS", 0)))' >"$2/schemathesis/cli.py" ;;
*) exec {self.bin}/real-python3 "$@" ;;
esac""",
        )
        self.write("server.py", SERVER)
        self.stand_in("rcrt", f"exec {self.bin}/real-python3 {self.tree}/server.py \"$@\"")
        self.write("fuzz/api/requirements.txt", "schemathesis==9.9.9\n")
        self.write("fuzz/api/schemathesis.toml", "# OFF a check, because\n#   of this\n[checks.a]\n# no more\n")

    def fuzz(self, *words, **settings):
        settings = {"RCRT": self.bin / "rcrt", "REPORT": REPORT.format(3, 3)} | settings
        return self.run_script("build/fuzz-api", *words, **settings)

    def test_a_server_that_conforms_passes(self):
        self.fuzz("5", "7").ends(0).says("Installing schemathesis==9.9.9", "build/fuzz-api 5 7", "fine", "OFF a check", "  of this")
        self.assertNotIn("Installing", self.fuzz("5", "7").ends(0).out)

    def test_a_finding_fails_with_the_whole_report(self):
        self.fuzz(ENDS=1, REPORT="a 500 of GET /x").ends(1).says("a 500 of GET /x")

    def test_operations_that_were_left_out_fail(self):
        self.fuzz(REPORT=REPORT.format(3, 2)).ends(1).says("2 operations of 3 were tried")

    def test_an_error_in_the_servers_log_fails(self):
        self.fuzz(SAYS="12:00 ERROR store: broken").ends(1).says("store: broken", "log has errors")

    def test_a_server_that_does_not_start_is_shown_with_its_log(self):
        self.stand_in("rcrt", "echo 'rcrt: no sandbox' >&2; exit 7")
        self.fuzz().ends(1).says("rcrt: no sandbox", "the server did not start")

    def test_without_a_program_it_is_built_and_a_failure_stops_it(self):
        self.stand_in("cargo", "echo 'error: it does not compile' >&2; exit 101")
        self.fuzz(RCRT="").ends(101).says("does not compile")

    def test_failed_installations_and_wrong_arguments_are_reported(self):
        self.stand_in("python3", 'case "$*" in *pip*) echo "no index" >&2; exit 1 ;; *) echo cpython ;; esac')
        self.fuzz().ends(1).says("no index", "its packages cannot be installed")
        self.fuzz("many").ends(2).says("numbers, not 'many'")
        self.fuzz("5", "x").ends(2).says("numbers, not '5 x'")


if __name__ == "__main__":
    unittest.main()
