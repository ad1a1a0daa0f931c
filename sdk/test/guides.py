"""Runs the code of the guides and compares what it prints with what they say: `guides.py FOLDER`.

A page of the folder that holds MARK is such a guide.

```sh, ```ts and ```python blocks run in order, in one folder for each page. `file=PATH` writes the block there instead,
`fails` expects a failure. A ```text block after one is what it prints, line by line; `…` matches anything, as a line
any lines. A ```rust block is part of the example that it names, which cargo compiles. If that is built, it runs.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BINARY = Path(os.environ["RCRT_BIN"])
PYTHON = os.environ["RCRT_GUIDE_PYTHON"]
TYPESCRIPT = Path(os.environ["RCRT_GUIDE_TYPESCRIPT"])
BLOCK = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MARK = "<!-- build/test-sdk runs this page -->"
COMPILER = {"target": "es2022", "module": "nodenext", "strict": True, "types": ["node"], "outDir": "out"}


def prepared(folder: Path) -> dict[str, str]:
    binaries = folder / ".bin"
    binaries.mkdir()
    (binaries / "rcrt").symlink_to(BINARY)
    modules = folder / "node_modules"
    (modules / "@rcrt").mkdir(parents=True)
    (modules / "@rcrt" / "client").symlink_to(TYPESCRIPT)
    (modules / "@types").symlink_to(TYPESCRIPT / "node_modules" / "@types")
    (folder / "package.json").write_text('{"type": "module"}')
    kept = {name: value for name, value in os.environ.items() if name not in ("RCRT_DATA", "CI")}
    return {
        **kept,
        "PATH": f"{binaries}:{os.environ['PATH']}",
        "RCRT_SERVER": os.environ["RCRT_TEST_URL"],
        "RCRT_TOKEN": os.environ["RCRT_TEST_TOKEN"],
        "NO_COLOR": "1",
    }


def commands(language: str, code: str, folder: Path, number: int) -> list[list[str]]:
    if language == "sh":
        return [["bash", "-euo", "pipefail", "-c", code]]
    if language == "python":
        (folder / f"guide{number}.py").write_text(code)
        check = [PYTHON, "-m", "mypy", "--strict", "--no-error-summary", "--cache-dir", str(folder / ".mypy")]
        return [[*check, f"guide{number}.py"], [PYTHON, f"guide{number}.py"]]
    if language == "ts":
        (folder / f"guide{number}.ts").write_text(code)
        options = [part for name, value in COMPILER.items() for part in (f"--{name}", option(value))]
        tsc = str(TYPESCRIPT / "node_modules" / ".bin" / "tsc")
        return [[tsc, *options, f"guide{number}.ts"], ["node", f"out/guide{number}.js"]]
    raise SystemExit(f"guides: {language} is not a supported language")


def option(value: object) -> str:
    return ",".join(value) if isinstance(value, list) else str(value).lower()


def fits(said: str, printed: str) -> bool:
    pattern = re.escape(said.strip()).replace("…", ".*?")
    return re.search(f"^{pattern}", printed, re.MULTILINE | re.DOTALL) is not None


def example(name: str, code: str, environment: dict[str, str]) -> None:
    source = (ROOT / "crates" / "storage" / "client" / "examples" / f"{name}.rs").read_text()
    if code.strip() not in source:
        raise SystemExit(f"guides: the Rust code differs from crates/storage/client/examples/{name}.rs")
    built = BINARY.parent / "examples" / name
    if built.exists():
        subprocess.run([built], env=environment, check=True, timeout=120, stdout=subprocess.DEVNULL)


def run(page: Path) -> int:
    ran = 0
    with tempfile.TemporaryDirectory(prefix="rcrt-guide-") as temporary:
        folder = Path(temporary)
        environment = prepared(folder)
        printed = ""
        for number, (language, more, code) in enumerate(BLOCK.findall(page.read_text())):
            place = f"{page.name}, block {number + 1} ({language})"
            if language == "text":
                if not fits(code, printed):
                    raise SystemExit(f"guides: {place}: the output is not what the page shows:\n{printed}\n-- instead of --\n{code}")
                continue
            words = dict(word.partition("=")[::2] for word in more.split())
            if "file" in words:
                (folder / words["file"]).write_text(code)
                continue
            if language == "rust":
                example(words["example"], code, environment)
                continue
            for command in commands(language, code, folder, number):
                done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
                printed = done.stdout + done.stderr
                if (done.returncode != 0) != ("fails" in words):
                    raise SystemExit(f"guides: {place}: exited with {done.returncode}:\n{printed}")
            ran += 1
    return ran


if __name__ == "__main__":
    pages = [page for page in sorted(Path(sys.argv[1]).glob("*.md")) if MARK in page.read_text()]
    if not pages:
        raise SystemExit("guides: no page has the mark")
    for page in pages:
        print(f"{page.name}: {run(page)} blocks ran")
