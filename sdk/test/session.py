"""Runs the session of README.md against a separate server and compares its output:
`session.py README.md`.

The first block of the section is the end of what `rcrt up` prints. Each other block is commands behind `$ `, with what
they print below them. `...` matches anything. Ids, times, durations and Postgres' version differ from run to run, and
so do the folder and the port; line breaks and indentation do not count.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

BINARY = Path(os.environ["RCRT_BIN"])
HEADING = "## A session"
SHOWN_ADDRESS = "http://127.0.0.1:8081"
SHOWN_FOLDER = "/home/you/rcrt"
# Long enough for a slow machine. A session that hangs is stopped.
LONGEST = 300

DIFFERS = [
    (re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "<id>"),
    (re.compile(r"\b\d{4}-\d\d-\d\dT[\d:.]+Z"), "<time>"),
    (re.compile(r'("execution_time_ms": ?)\d+'), r"\1<number>"),
    (re.compile(r"\b[\d.]+ (ms|s)\b"), r"<number> \1"),
    (re.compile(r"^(Postgres +)[\d.]+", re.MULTILINE), r"\1<version>"),
]


def blocks(page: str) -> list[str]:
    """The indented blocks of the section, without indentation."""
    if f"\n{HEADING}\n" not in page:
        raise SystemExit(f"session: README.md has no section {HEADING!r}")
    section = page.split(f"\n{HEADING}\n")[1].split("\n## ")[0]
    found: list[list[str]] = [[]]
    for line in section.splitlines():
        if line.startswith("    "):
            found[-1].append(line[4:])
        elif line.strip():
            found.append([])
        elif found[-1]:
            found[-1].append("")
    return ["\n".join(lines).strip("\n") for lines in found if lines]


def commands(block: str) -> Iterator[tuple[str, str]]:
    """Each command with its output."""
    lines = block.splitlines()
    while lines:
        command = lines.pop(0)
        if not command.startswith("$ "):
            raise SystemExit(f"session: this block does not start with a command: {command!r}")
        command = command[2:]
        while lines and (command.endswith("\\") or command.count("'") % 2):
            command += "\n" + lines.pop(0)
        shown = []
        while lines and not lines[0].startswith("$ "):
            shown.append(lines.pop(0))
        yield command, "\n".join(shown)


def comparable(text: str, address: str, folder: str) -> str:
    text = text.replace(address, SHOWN_ADDRESS).replace(folder, SHOWN_FOLDER)
    for pattern, name in DIFFERS:
        text = pattern.sub(name, text)
    return "".join(text.split())


def compare(shown: str, printed: str, address: str, folder: str, *, more: bool = False) -> None:
    wanted, found = comparable(shown, address, folder), comparable(printed, address, folder)
    pattern = ".*?".join(re.escape(part) for part in re.split(r"\.\.\.|…", wanted))
    matches = re.match if more or wanted.endswith(("...", "…")) else re.fullmatch
    if not matches(pattern, found, re.DOTALL):
        raise SystemExit(f"session: the output is:\n{printed}\n-- README.md shows:\n{shown}")


def bash(command: str, folder: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    words = ["bash", "-uo", "pipefail", "-c", command]
    return subprocess.run(words, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def answered(request: str, folder: Path, environment: dict[str, str]) -> None:
    """Waits until the request has its response."""
    words = [BINARY, "crumb", "watch", "--schema", "tool.response.v1", "--tag", f"request:{request}", "--since", "0"]
    with subprocess.Popen(words, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True) as watching:
        assert watching.stdout is not None
        event = watching.stdout.readline()
        watching.terminate()
    if not event:
        raise SystemExit(f"session: the request {request} got no response")


def try_commands(session: list[tuple[str, str]], address: str, folder: Path, environment: dict[str, str]) -> None:
    assigned = ""
    for command, shown in session:
        done = bash(assigned + command.replace(SHOWN_ADDRESS, address), folder, environment)
        # A failed command shows its error in its first line.
        if (done.returncode != 0) != shown.startswith("rcrt: "):
            raise SystemExit(f"session: this exited with {done.returncode}: {command}\n{done.stdout}")
        if shown:
            compare(shown, done.stdout, address, str(folder))
        if re.match(r"[A-Z_]+=", command):
            assigned += command + "\n"
        if request := re.search(r'"requestId": "([^"]+)"', command):
            answered(request[1], folder, environment)


def run(page: str) -> int:
    begin, *rest = blocks(page)
    session = [step for block in rest for step in commands(block)]
    if not session:
        raise SystemExit("session: the section has no command")
    with tempfile.TemporaryDirectory(prefix="rcrt-session-") as temporary:
        folder = Path(temporary).resolve()
        binaries = folder / ".bin"
        binaries.mkdir()
        (binaries / "rcrt").symlink_to(BINARY)
        (folder / ".curlrc").write_text("silent\nshow-error\nfail-with-body\n")
        kept = {name: value for name, value in os.environ.items() if not name.startswith("RCRT_") or name == "RCRT_CACHE"}
        environment = {
            **kept,
            "PATH": f"{binaries}:{os.environ['PATH']}",
            "CURL_HOME": str(folder),
            "NO_COLOR": "1",
            "RCRT_EMBEDDINGS": "off",
        }
        with (folder / "log").open("w") as log:
            up = subprocess.Popen(
                [BINARY, "up", "--listen", "127.0.0.1:0"], cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=log, text=True
            )
            try:
                assert up.stdout is not None
                printed = ""
                for line in up.stdout:
                    printed += line
                    if line.startswith("Ctrl-C"):
                        break
                address = re.search(r"^API +(\S+)$", printed, re.MULTILINE)
                if address is None:
                    raise SystemExit(f"session: rcrt up did not start:\n{printed}{(folder / 'log').read_text()}")
                compare(begin, printed, address[1], str(folder), more=True)
                try_commands(session, address[1], folder, environment)
            finally:
                up.send_signal(signal.SIGINT)
                try:
                    up.wait(timeout=60)
                except subprocess.TimeoutExpired:
                    up.kill()
                    up.wait()
    return len(session)


def give_up(*_: object) -> None:
    raise SystemExit(f"session: not finished after {LONGEST} s")


if __name__ == "__main__":
    # An exception, so that all processes are stopped.
    signal.signal(signal.SIGALRM, give_up)
    signal.alarm(LONGEST)
    print(f"{run(Path(sys.argv[1]).read_text())} commands ran")
