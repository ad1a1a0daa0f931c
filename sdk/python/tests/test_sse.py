from __future__ import annotations

from rcrt._sse import Message, Parser


def read(*parts: str) -> list[Message]:
    parser = Parser()
    return [message for part in parts for message in parser.read(part)]


def test_the_standards_own_examples() -> None:
    text = ": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n"
    assert read(text) == [Message("1", "", "first event"), Message("", "", "second event"), Message("", "", " third event")]
    assert read("data\n\ndata\ndata\n\ndata:") == [Message("", "", ""), Message("", "", "\n")]
    assert read("\ufeffdata: YHOO\r\ndata: +2\rdata: 10\n\n") == [Message("", "", "YHOO\n+2\n10")]


def test_an_id_stays_until_the_next_one_and_an_events_name_is_of_one_message() -> None:
    assert read("id: 7\n\ndata: a\nevent: x\n\nid: 8\ndata: b\n\n") == [Message("7", "x", "a"), Message("8", "", "b")]
    assert read("id: 7\nid: 8\0\ndata: a\n\n") == [Message("7", "", "a")]


def test_any_split_of_the_text_is_parsed_alike() -> None:
    text = "\ufeffid: 1\r\ndata: a\r\n\r\n: note\rdata: b\rdata: é☃\n\ndata\n\nid: 2\ndata: c\r\r\ndata: d\n\n"
    whole = read(text)
    assert len(whole) == 5
    for first in range(len(text) + 1):
        for second in range(first, len(text) + 1):
            assert read(text[:first], text[first:second], text[second:]) == whole
