"""Installs a client from its folder into an empty project, as its README says, and runs the README's first call:
`installed.py npm|pip WORK_FOLDER`."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

SDK = Path(__file__).resolve().parents[1]
URL = "http://127.0.0.1:8081"
LEFT_OUT = shutil.ignore_patterns("node_modules", "dist", "build", "__pycache__", ".*_cache")


def block(readme: str, language: str) -> str:
    """The first block of code in this language after the title of the first call."""
    found = re.search(rf"^## First call$.*?^```{language}\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)
    if found is None:
        raise SystemExit(f"installed: the README has no first call in {language}")
    return found[1]


def run(*command: str, folder: Path, **more: str) -> str:
    done = subprocess.run(command, cwd=folder, env={**os.environ, **more}, capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        raise SystemExit(f"installed: {' '.join(command)} exited with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def main(kind: str, work: Path) -> None:
    name, language, file = {"npm": ("typescript", "js", "first.mjs"), "pip": ("python", "python", "first.py")}[kind]
    # A copy, so that nothing is built in the checkout.
    package, project = work / f"{kind}-package", work / f"{kind}-project"
    shutil.copytree(SDK / name, package, ignore=LEFT_OUT)
    project.mkdir(parents=True)
    readme = (SDK / name / "README.md").read_text(encoding="utf-8")
    (project / file).write_text(block(readme, language).replace(URL, os.environ["RCRT_TEST_URL"]), encoding="utf-8")
    more = {"RCRT_TOKEN": os.environ["RCRT_TEST_TOKEN"]}
    if kind == "npm":
        (project / "package.json").write_text('{"private": true}')
        run("npm", "install", "--no-audit", "--no-fund", str(package), folder=project)
        printed = run("node", file, folder=project, **more)
    else:
        # Into a folder, because not every Python can create a virtual environment.
        run(sys.executable, "-m", "pip", "install", "--quiet", "--target", "modules", str(package), folder=project)
        if not (project / "modules" / "rcrt" / "py.typed").exists():
            raise SystemExit("installed: the package has no py.typed, so its types are not used")
        printed = run(sys.executable, file, folder=project, PYTHONPATH=str(project / "modules"), **more)
    if printed != block(readme, "text"):
        raise SystemExit(f"installed: the first call printed {printed!r}")
    print(printed)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
