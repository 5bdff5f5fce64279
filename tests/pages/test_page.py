"""Reading of pages: what becomes a file, a command, an output, and when they agree."""

from __future__ import annotations

import pytest

from tests.pages.page import Command, Example, File, Setup, agrees, links, steps
from tests.pages.reader import Reader

PAGE = """\
# A page
Once for a machine:
```sh
sudo make
```
Write `a.txt`:
```text
one
```
Add to `a.txt` this:
```sh
two
```
```tdl
bridge s
```
```console
$ cat a.txt
one
…
$ for x in 1 2; do
>     echo $x
> done
$ false    # ends with 1, as it must
$ echo 17
```
```text
23
```
"""


def test_what_a_page_tells() -> None:
    assert steps(PAGE) == [
        Setup("sudo make\n"),
        File("a.txt", "one\n", append=False),
        File("a.txt", "two\n", append=True),
        Example("bridge s\n"),
        Command("cat a.txt", shown="one\n…\n"),
        Command("for x in 1 2; do\n    echo $x\ndone"),
        Command("false", code=1),
        Command("echo 17", shown="23\n", exact=False),
    ]


@pytest.mark.parametrize(
    "page",
    [
        "```\nwords\n```\n",
        "```python\npass\n```\n",
        "```console\noutput\n```\n",
        "```text\nx\n```\n",
    ],
)
def test_nothing_is_left_untested_in_silence(page: str) -> None:
    with pytest.raises(ValueError):
        steps(page)


@pytest.mark.parametrize(
    ("shown", "exact", "printed", "agreed"),
    [
        ("", True, "anything", True),
        ("a b\n", True, "a b\n", True),
        ("a b\n", True, "a b\nc\n", False),
        ("a b\n", True, "a  b\n", False),
        ("a … c\n", True, "a long way to c\n", True),
        ("a … c\n", True, "a\n c\n", False),
        ("a\n…\n", True, "a\n", True),
        ("a\n…\n", True, "a\nb\nc\n", True),
        ("…\nc\n", True, "a\nb\nc\n", True),
        ("…\nc\n", True, "a\nb\n", False),
        ("a.b\n", True, "axb\n", False),
        ("lost: 12 of 3.5\n", False, "lost: 7  of 100\n", True),
        ("lost: 12\n", False, "kept: 12\n", False),
        ("lost: 12\n", True, "lost: 13\n", False),
    ],
)
def test_when_they_agree(shown: str, exact: bool, printed: str, agreed: bool) -> None:
    assert agrees(Command("x", shown=shown, exact=exact), printed) is agreed


def test_links_of_prose_only() -> None:
    page = "[a](b.md) [c](https://c) [d](e.md#f) [g](#h)\n```sh\n[x](y.md)\n```\n"
    assert links(page) == ["b.md", "e.md"]


def test_a_reader_types_what_stands_there(reader: Reader) -> None:
    reader.follow(steps(PAGE.replace("$ cat a.txt", "$ mkdir d && cd d && cat ../a.txt")))
    assert reader.printed["echo 17"] == "17\n"
    reader.follow([Command("pwd", shown=f"{reader.folder}/d\n")])


@pytest.mark.parametrize(
    "command", [Command("true", code=1), Command("false"), Command("echo a", shown="b\n")]
)
def test_a_reader_notices_what_is_wrong(reader: Reader, command: Command) -> None:
    with pytest.raises(AssertionError, match=command.text):
        reader.follow([command])
