"""An incremental parser of server-sent events (the rules of the HTML standard, section 9.2.6)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .errors import RcrtError

#: The most characters of one message. The largest record's event is far below.
MOST_CHARS = 64 * 1024 * 1024

_END = re.compile("\r\n|\n|\r")


@dataclass(frozen=True)
class Message:
    #: The id of this message, or of the last one before it that had one.
    id: str
    #: The ``event:`` field; empty for most.
    event: str
    data: str


class Parser:
    def __init__(self) -> None:
        self._rest = ""
        self._data: list[str] = []
        self._length = 0
        self._id = ""
        self._event = ""
        self._begun = False
        # The last character was a CR. An LF directly after it belongs to the same line break.
        self._after_cr = False

    def read(self, text: str) -> list[Message]:
        """Parses more text, and returns the messages that are complete."""
        found: list[Message] = []
        if not text:
            return found
        if not self._begun:
            self._begun = True
            text = text.removeprefix("\ufeff")
        if self._after_cr and text:
            text = text.removeprefix("\n")
            self._after_cr = False
        if not text:
            return found
        self._after_cr = text.endswith("\r")
        *lines, rest = _END.split(text)
        for line in lines:
            self._line(self._rest + line, found)
            self._rest = ""
        self._rest += rest
        if len(self._rest) + self._length > MOST_CHARS:
            raise RcrtError(f"a message of the event stream has more than {MOST_CHARS} characters", "foreign", False)
        return found

    def _line(self, line: str, found: list[Message]) -> None:
        if not line:
            if self._data:
                found.append(Message(self._id, self._event, "\n".join(self._data)))
            self._data, self._length, self._event = [], 0, ""
            return
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        # Comments (an empty field name) and retry times mean nothing here.
        if field == "data":
            self._data.append(value)
            self._length += len(value)
        elif field == "event":
            self._event = value
        elif field == "id" and "\0" not in value:
            self._id = value
