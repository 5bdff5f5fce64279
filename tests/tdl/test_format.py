"""`tstorm fmt`: the canonical form of files, with their comments."""

from __future__ import annotations

import pytest

from tdl.diagnostics import TdlError
from tdl.formatter import WIDTH, format_statement
from tdl.text_layout import format_text
from tests.tdl.helpers import meaning, one

UNTIDY = """\


#!/usr/bin/env tstorm
service   web image="nginx:1.27"   tags=a b ;c   # front\t
service db exec="sh -c 'a \\"b\\"'" env=A:"x y";B:1 port=80;443 cpu=500m mem=1024MiB replicas=2



# the core
bridges s1
link web — s1 bandwidth=1000Mb lat=9.10 drop=0.010 # up
link db--s1 latency=1 up=1.5Gb down=1.5Gb queue=65536 dist=uniform jitter=0.5
at 90m crash web 3 and join db
from 0.5s to 3600s flap web--s1 freq 0.93s
churn web 10%
at 2h set web--s1 bw=50% j=1 up-=0
at 2h web--s1 set latency+=0.5
at 3h partition  web ; tags=c  db.0
at 24h1s quit
# end"""
TIDY = """\
#!/usr/bin/env tstorm
service web img=nginx:1.27 tags=a;b;c  # front
service db exec="sh -c 'a \\"b\\"'" replicas=2 env=A:"x y";B:1 port=80;443 cpu=0.5 mem=1GiB

# the core
bridge s1
link web--s1 latency=9.1ms loss=1% up=1Gb symmetric  # up
link db--s1 latency=1ms jitter=0.5ms up=1.5Gb down=1.5Gb queue=64KiB dist=uniform
at 1h30m web crash 3 and db join
from 500ms to 1h web--s1 flap 930ms
from 0s web churn 10%
at 2h web--s1 set rate=50% jitter=1ms
at 2h web--s1 set latency+=0.5ms
at 3h partition web;tags=c db.0
at 1d1s quit
# end
"""


def test_the_canonical_form() -> None:
    assert format_text(UNTIDY.replace(" up-=0", "")) == TIDY
    assert format_text(TIDY) == TIDY
    assert format_text(TIDY.encode()) == TIDY


def test_comments_inside_a_statement_move_before_it() -> None:
    text = "service a command=[ # first\n 'x', # second\n 'y' ] # third\n"
    assert format_text(text) == "# first\n# second\nservice a command=['x', 'y']  # third\n"


def test_long_statements_are_broken_between_words() -> None:
    words = ";".join(f"variable{n}:{n}" for n in range(3))
    text = f'service a img=nginx:1.27 exec="{"x" * 60}" env={words} replicas=3 cpu=2 port=80\n'
    formatted = format_text(text)
    lines = formatted.split("\n")
    assert len(lines) > 2
    assert all(len(line) <= WIDTH for line in lines)
    assert all(line.endswith(" \\") for line in lines[:-2])
    assert meaning(formatted) == meaning(text)
    assert format_text(formatted) == formatted


def test_nothing_stays_nothing() -> None:
    assert format_text("") == ""
    assert format_text("\n\n \n") == ""
    assert format_text("# only\n") == "# only\n"
    assert format_text("bridge a\n\n \n\n") == "bridge a\n"


def test_a_file_with_errors_is_not_formatted() -> None:
    with pytest.raises(TdlError) as caught:
        format_text("servce a\nlink a--b up=1GB\n")
    assert [d.code for d in caught.value.diagnostics] == ["TS0008", "TS0023"]


def test_bytes_that_are_not_utf8_are_not_formatted() -> None:
    with pytest.raises(TdlError) as caught:
        format_text(b"# \xff\n")
    assert caught.value.diagnostics[0].code == "TS0001"


@pytest.mark.parametrize(
    ("written", "identity"),
    [
        ("at 4h20m server—s1 leave", "at 4h20m server--s1 leave"),
        ("from 30m to 3h30m server churn 40% replace 50%",) * 2,
        ("from 12h to 24h tags=be leave 60%", "from 12h to 1d tags=be leave 60%"),
        ("at 5s background a->b 0", "at 5s a->b background 0"),
        ("at 5s a--b set up=unlimited", "at 5s a--b set up=unlimited"),
    ],
)
def test_the_identity_of_statements(written: str, identity: str) -> None:
    assert format_statement(one(written)) == identity


def test_a_long_list_is_broken_after_a_semicolon() -> None:
    env = ";".join(f"VARIABLE_{i}:value-{i}" for i in range(20))
    tags = ";".join(f"quite-a-long-tag-{i}" for i in range(12))
    text = f"service a tags={tags} env={env} port=80\n"
    tidy = format_text(text)
    assert max(map(len, tidy.splitlines())) <= WIDTH
    assert format_text(tidy) == tidy
    assert meaning(tidy) == meaning(text)


def test_the_items_of_a_loop_stay_as_they_are_written() -> None:
    text = 'for x in "a ; b" ; "c;" {\n  service $x\n}\n'
    assert format_text(text).splitlines()[0] == 'for x in "a ; b";"c;" {'


def test_a_table_of_one_row_stays_a_table() -> None:
    text = "service a\nservice b\npath a--b abw=1Mb rtt=10ms\nat 1s a--b set abw-flows-up=1:2Mb\n"
    assert format_text(text) == text
