"""The server that the tests talk to: `build/test-sdk` starts it and passes its URL."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rcrt import Rcrt


def setting(name: str) -> str:
    if name not in os.environ:
        raise RuntimeError(f"{name} is not set; start the tests with build/test-sdk")
    return os.environ[name]


def url() -> str:
    return setting("RCRT_TEST_URL")


def curator() -> Rcrt:
    """A client with all rights."""
    return Rcrt(url(), token=setting("RCRT_TEST_TOKEN"))


def word() -> str:
    """A name that no other test uses."""
    return f"t{uuid.uuid4().hex[:16]}"


class OwnServer:
    """A separate server for a test, on its own port, that can be stopped and started again on
    the same data."""

    def __init__(self, data: Path, *options: str) -> None:
        self.data = data
        self.options = options
        self.url = ""
        self.token = ""
        self._listen = "127.0.0.1:0"
        self._process: asyncio.subprocess.Process | None = None
        self._draining: asyncio.Task[bytes] | None = None

    async def start(self) -> None:
        """Returns when it responds."""
        command = [setting("RCRT_BIN"), "up", "--data", str(self.data), "--listen", self._listen, "--no-seed"]
        self._process = await asyncio.create_subprocess_exec(*command, *self.options, stdout=asyncio.subprocess.PIPE)
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            text = line.decode()
            if found := re.match(r"API\s+(http://\S+)", text):
                self.url = found[1]
            if text.startswith("Ctrl-C"):
                break
        assert self.url, "rcrt did not start"
        self._draining = asyncio.create_task(self._process.stdout.read())
        self._listen = self.url.removeprefix("http://")
        self.token = (self.data / "token").read_text().strip()

    async def end(self, how: signal.Signals) -> None:
        """SIGKILL is a crash, SIGTERM an orderly stop."""
        if self._process is not None and self._process.returncode is None:
            self._process.send_signal(how)
            await self._process.wait()
        if self._draining is not None:
            await self._draining


@dataclass
class Answer:
    """A response. `cut` closes the connection without one, `open` continues forever."""

    status: int = 200
    body: object = None
    headers: dict[str, str] = field(default_factory=dict)
    cut: bool = False
    open: bool = False


CUT = Answer(cut=True)


def problem(status: int, code: str, **headers: str) -> Answer:
    body = {"type": f"/docs#problem-{code}", "title": code, "status": status, "detail": "set by the test", "code": code}
    return Answer(status, body, {name.replace("_", "-"): value for name, value in headers.items()})


@dataclass
class Request:
    line: str
    headers: dict[str, str]
    body: str


class Scripted:
    """A proxy between the client and the server that a test can make fail."""

    def __init__(self, answers: list[Answer]) -> None:
        self.answers = answers
        self.requests: list[Request] = []
        self.url = ""
        self.asked = asyncio.Event()
        self._writers: list[asyncio.StreamWriter] = []

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
        body = (await reader.readexactly(int(headers.get("content-length", "0")))).decode()
        self.requests.append(Request(head[0], headers, body))
        self.asked.set()
        answer = self.answers.pop(0) if self.answers else CUT
        if answer.cut:
            writer.transport.abort()
            return
        text = answer.body if isinstance(answer.body, (str, bytes)) else json.dumps(answer.body)
        writer.write(f"HTTP/1.1 {answer.status} X\r\nconnection: close\r\n".encode())
        sent = {"content-type": "application/json", **answer.headers}
        writer.write("".join(f"{name}: {value}\r\n" for name, value in sent.items()).encode())
        writer.write(b"\r\n" + (text if isinstance(text, bytes) else text.encode()))
        await writer.drain()
        if not answer.open:
            writer.close()

    def close(self) -> None:
        for writer in self._writers:
            writer.transport.abort()


@asynccontextmanager
async def scripted(*answers: Answer) -> AsyncIterator[Scripted]:
    script = Scripted(list(answers))
    server = await asyncio.start_server(script.answer, "127.0.0.1", 0)
    script.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield script
    finally:
        script.close()
        server.close()
