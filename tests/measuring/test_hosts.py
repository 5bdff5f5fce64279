"""HOSTS.toml: what it means, what is wrong with it; how words reach a shell at the other end."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.errors import RunError
from tstorm.measuring import measured_hosts, paths_text, remote_commands
from tstorm.measuring.measured_hosts import MeasuredHost

OTHER = '[hosts.z]\nhere = true\naddress = "10.9.9.9"\n'


def one(text: str) -> MeasuredHost:
    return measured_hosts.read(f"[hosts.a]\n{text}\n{OTHER}".encode(), "hosts.toml")[0]


@pytest.mark.parametrize(
    ("ssh", "address"),
    [("paris", "paris"), ("me@paris.example.org", "paris.example.org"),
     ("ssh://me@paris:2222", "paris"), ("ssh://[2001:db8::1]", "2001:db8::1")],
)  # fmt: skip
def test_ssh_says_where_a_host_is(ssh: str, address: str) -> None:
    host = one(f'ssh = "{ssh}"')
    assert (host.address, host.port) == (address, 5201)
    assert host.command[-2:] == ("--", ssh)
    assert "BatchMode=yes" in host.command


def test_an_address_is_for_the_other_hosts() -> None:
    host = one('ssh = "me@jump"\naddress = "192.0.2.7"\nport = 6000')
    assert (host.address, host.port, host.ssh) == ("192.0.2.7", 6000, "me@jump")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "none of ssh, command, here"),
        ('ssh = "a"\nhere = true', "ssh and here: say one way"),
        ('ssh = "-oProxyCommand=touch x"', "is no destination"),
        ('ssh = "a b"', "is no destination"),
        ('ssh = "a\\u001b[2J"', "is no destination"),
        ("ssh = 5", "ssh must be a text"),
        ('ssh = "a"\nadress = "b"', "did you mean address?"),
        ('ssh = "a"\naddress = "-c evil"', "has the address '-c evil'"),
        ('ssh = "a"\nport = 70000', "port must be a number from 1 to 65535, not 70000"),
        ('ssh = "a"\nport = true', "not True"),
        ("here = true", "has no address"),
        ("here = false", "leave it out"),
        ('command = "ip netns"', "is no list of words"),
        ("command = []", "is no list of words"),
        ('ssh = "a"\naddress = "10.9.9.9"', "a and z have the address 10.9.9.9"),
    ],
)
def test_what_is_wrong_names_the_host(text: str, said: str) -> None:
    with pytest.raises(RunError) as error:
        one(text)
    assert said in str(error.value)
    assert "a" in error.value.message


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"[hosts.a\n", "is no TOML: "),
        (b"\xff", "is no TOML: "),
        (b"a = 1\n", "'a' is not known"),
        (b"hosts = 1\n", "hosts is no table"),
        (b"[hosts]\na = 1\n", "host 'a' is no table"),
        (b"", "has 0 of the 2 to 128 hosts"),
        (OTHER.encode(), "has 1 of the 2 to 128 hosts"),
    ],
)
def test_what_is_no_file_of_hosts(data: bytes, said: str) -> None:
    with pytest.raises(RunError, match=said):
        measured_hosts.read(data, "hosts.toml")


@given(st.binary(max_size=200))
def test_any_bytes_are_hosts_or_an_error(data: bytes) -> None:
    try:
        assert measured_hosts.read(data, "hosts.toml")
    except RunError as error:
        assert "hosts.toml" in error.message


def test_one_at_a_time_measures_the_hosts_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "hosts.toml"
    file.write_text('[hosts.a]\nssh = "a"\n' + OTHER)
    with measured_hosts.opened(str(file)) as hosts:
        assert [host.name for host in hosts] == ["a", "z"]
        with pytest.raises(RunError, match="another tstorm"), measured_hosts.opened(str(file)):
            pass
    with measured_hosts.opened(str(file)):
        pass


@pytest.mark.parametrize("name", ["at", "a b", "a img=x", "1a", "", "a\n", "a\nseed 1", "a#", "ä"])
def test_names_that_no_service_can_have(name: str) -> None:
    with pytest.raises(RunError, match="a host cannot be called"):
        paths_text.check_names(["a", name])


def test_names_that_services_have() -> None:
    paths_text.check_names(["paris", "h0", "new-york_2"])


@given(st.lists(st.text(st.characters(exclude_characters="\0"), max_size=20), max_size=5))
def test_words_come_through_a_shell_as_they_are(words: list[str]) -> None:
    there = remote_commands.words(one('ssh = "a"'), words)
    assert there[-2] == "a"
    assert shlex.split(there[-1])[:2] == ["sh", "-c"]
    assert shlex.split(there[-1])[4:] == words
