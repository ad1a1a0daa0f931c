"""What the scripts that try the built program share: where it is, its environment, and where they install what they need."""

import os
import pathlib
import socket
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def cache():
    """The folder of what the scripts install."""
    home = os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache"))
    return pathlib.Path(os.environ.get("RCRT_CACHE", f"{home}/rcrt"))


def default_binary():
    """Where cargo puts the program."""
    return pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "debug/rcrt"


def add_binary(parser):
    """The option --binary."""
    parser.add_argument("--binary", type=pathlib.Path, default=default_binary(), metavar="FILE")


def built(binary):
    """The absolute path of the program. Ends the script if it is missing."""
    if not binary.exists():
        sys.exit(f"{pathlib.Path(sys.argv[0]).name}: {binary} does not exist; build it first (cargo build --bin rcrt)")
    return binary.resolve()


def clean_environment():
    """The variables of this process without settings of RCRT."""
    return {name: value for name, value in os.environ.items() if not name.startswith("RCRT_") or name == "RCRT_CACHE"}


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]
