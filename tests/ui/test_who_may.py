"""Who gets anything of the page's server, and what those who flood, lag or lie come to."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.errors import RunError
from runtime.page.page_file import live_page
from tests.ui.served import JSON, SECRET, Site, served
from tests.waiting import wait_until
from tstorm.live import steer
from tstorm.ui import feed, routes, serving
from tstorm.ui.routes import API

PATHS = ("/metrics", f"{API}/state", f"{API}/stream", f"{API}/openapi.json")
ACTIONS = ("do", "hold", "hold-time", "go", "skip")


@pytest.fixture
def site() -> Iterator[Site]:
    with served() as one:
        yield one


# -- without the secret ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "headers",
    [{}, {"Authorization": "Bearer wrong"}, {"Authorization": ""}, {"Cookie": "token=x"}],
)
def test_another_user_of_the_machine_gets_nothing(site: Site, headers: dict[str, str]) -> None:
    for path in PATHS:
        status, body, _ = site.ask("GET", path, headers)
        assert status == 401, path
        assert b"told" not in body
    for action in ACTIONS:
        assert site.post(action, {}, {**headers, "Content-Type": "application/json"})[0] == 401


def test_the_page_itself_has_nothing_of_the_run_and_no_secret(site: Site) -> None:
    status, body, headers = site.ask("GET", "/", {})
    assert (status, body.decode()) == (200, live_page(API))
    assert "set-cookie" not in {name.lower() for name in headers}


def test_the_secret_is_not_taken_from_the_address(site: Site) -> None:
    secret = SECRET["Authorization"].removeprefix("Bearer ")
    assert site.ask("GET", f"{API}/state?token={secret}", {})[0] == 401


def test_it_listens_on_loopback_unless_it_is_told_otherwise() -> None:
    with serving._bound(serving.LOOPBACK, 0) as bound:
        assert bound.getsockname()[0] == "127.0.0.1"
    assert [serving.is_loopback(one) for one in ("127.0.0.1", "::1", "localhost")] == [True] * 3
    assert [serving.is_loopback(one) for one in ("0.0.0.0", "10.0.0.1", "lab")] == [False] * 3


def test_a_secret_that_others_can_read_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("0123456789abcdef\n")
    file.chmod(0o644)
    with pytest.raises(RunError, match="can be read by others"):
        serving._token(str(file))
    file.chmod(0o600)
    assert serving._token(str(file)) == "0123456789abcdef"
    file.write_text("short\n")
    with pytest.raises(RunError, match="no secret of 16"):
        serving._token(str(file))


# -- other pages ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example:80", ""]
)
def test_a_name_that_leads_here_by_itself_is_refused(site: Site, host: str) -> None:
    """DNS rebinding: the page of evil.example would ask as if it were the same origin."""
    for path in ("/", f"{API}/state"):
        assert site.ask("GET", path, {**SECRET, "Host": host})[0] == 403


@pytest.mark.parametrize("host", ["localhost:9", "127.0.0.1", "[::1]:80", "LOCALHOST"])
def test_an_address_or_localhost_is_no_lie_whatever_the_port(site: Site, host: str) -> None:
    """A port that was forwarded by ssh is another than the server's."""
    assert site.ask("GET", f"{API}/state", {**SECRET, "Host": host})[0] == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},  # another user's server on this machine
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_another_origin_changes_and_reads_nothing(site: Site, headers: dict[str, str]) -> None:
    for action in ACTIONS:
        assert site.post(action, {}, {**JSON, **headers})[0] == 403
    assert site.ask("GET", f"{API}/state", {**SECRET, **headers})[0] == 403


def test_the_page_s_own_origin_is_served(site: Site) -> None:
    own = {"Origin": f"http://127.0.0.1:{site.port}", "Sec-Fetch-Site": "same-origin"}
    assert site.ask("GET", f"{API}/state", {**SECRET, **own})[0] == 200


def test_a_link_of_another_page_leads_to_the_empty_page_only(site: Site) -> None:
    """Somebody follows it: the page has nothing of the run until it has the secret."""
    from_elsewhere = {"Sec-Fetch-Site": "cross-site"}
    status, body, _ = site.ask("GET", "/", from_elsewhere)
    assert (status, body.decode()) == (200, live_page(API))
    assert site.ask("POST", "/", from_elsewhere)[0] == 403


@pytest.mark.parametrize(
    ("name", "status"), [("Origin", b" 403 "), ("Authorization", b" 401 "), ("Host", b" 400 ")]
)
def test_a_header_that_is_there_twice_is_believed_in_neither_form(
    site: Site, name: str, status: bytes
) -> None:
    own = {"Host": f"127.0.0.1:{site.port}", "Origin": f"http://127.0.0.1:{site.port}", **SECRET}
    rows = [*own.items(), (name, own[name] if name == "Authorization" else "http://evil.example")]
    head = "".join(f"{key}: {value}\r\n" for key, value in rows)
    with site.connect() as peer:
        peer.sendall(f"GET {API}/state HTTP/1.1\r\n{head}\r\n".encode())
        answer = peer.recv(4096)
    assert status in answer.splitlines()[0] + b" "
    assert b"told" not in answer


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""]
)
def test_a_form_of_another_page_does_nothing(site: Site, kind: str) -> None:
    """What a browser sends without asking first has no secret, and would be of another kind."""
    for action in ACTIONS:
        assert site.post(action, {}, {**SECRET, "Content-Type": kind})[0] == 415
        assert site.post(action, {}, {"Content-Type": kind})[0] == 401
        assert site.ask("GET", f"{API}/{action}")[0] == 405


def test_no_frame_no_sniffing_no_referrer_no_cache(site: Site) -> None:
    for path, given in (("/", {}), (f"{API}/state", SECRET), (f"{API}/state", {})):
        headers = {name.lower(): value for name, value in site.ask("GET", path, given)[2].items()}
        assert headers["x-frame-options"] == "DENY"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] == "no-store"
        assert "access-control-allow-origin" not in headers


# -- floods, laggards, nonsense -------------------------------------------------------------------


def test_a_request_is_bounded(site: Site) -> None:
    long = {"text": "x" * routes.BODY_BYTES}
    assert site.post("do", long)[0] == 413
    assert site.post("do", {"text": "x" * 40_000})[0] == 413
    chunks = (b"1000\r\n" + b" " * 0x1000 + b"\r\n") * 40
    with site.connect() as peer:
        words = "".join(f"{name}: {value}\r\n" for name, value in JSON.items())
        head = f"POST {API}/do HTTP/1.1\r\nHost: localhost\r\n{words}Transfer-Encoding: chunked\r\n"
        peer.sendall(f"{head}\r\n".encode())
        peer.sendall(chunks)
        assert b" 413 " in peer.recv(4096)


def test_a_head_is_bounded(site: Site) -> None:
    with site.connect() as peer:
        peer.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n")
        try:
            for number in range(100):
                peer.sendall(b"x-%d: " % number + b"y" * 1000 + b"\r\n")
            answer = peer.recv(4096)
        except ConnectionError:  # it was hung up on while it sent
            return
        assert b" 400 " in answer


@pytest.mark.parametrize(
    ("action", "body", "status"),
    [
        ("do", b"{", 400),
        ("do", b"[" * 30_000, 400),
        ("do", b"\xff", 400),
        ("do", b"[]", 422),
        ("do", b"{}", 422),
        ("do", b'{"text": 7}', 422),
        ("do", b'{"text": " "}', 422),
        ("do", b'{"text": "a leave", "run": "/etc"}', 422),
        ("hold", b'{"at": 1}', 422),
        ("skip", b"{}", 422),
        ("skip", b'{"to": "soon"}', 422),
    ],
)
def test_nonsense_is_told_so(site: Site, action: str, body: bytes, status: int) -> None:
    found, told, _ = site.ask("POST", f"{API}/{action}", JSON, body)
    assert found == status
    assert json.loads(told)["error"]


def test_who_says_nothing_is_hung_up_on(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "PATIENCE_SECONDS", 0.1)
    with site.connect() as silent, site.connect() as slow:
        slow.sendall(b"GET / HTTP/1.1\r\n")
        assert [_ended(one) for one in (silent, slow)] == [True, True]
    assert site.ask("GET", f"{API}/state")[0] == 200


def test_a_body_that_does_not_end_is_not_waited_for(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routes, "BODY_SECONDS", 0.1)
    words = "".join(f"{name}: {value}\r\n" for name, value in JSON.items())
    head = f"POST {API}/do HTTP/1.1\r\nHost: localhost\r\n{words}Content-Length: 50\r\n\r\n"
    with site.connect() as slow:
        slow.sendall(head.encode() + b'{"text": "a le')
        assert b" 408 " in slow.recv(4096)
    assert site.ask("GET", f"{API}/state")[0] == 200


@pytest.mark.parametrize(
    "nonsense",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200),  # TLS
        b"\x00" * 4096,
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ],
)
def test_what_is_no_request_is_hung_up_on(site: Site, nonsense: bytes) -> None:
    with site.connect() as peer:
        peer.sendall(nonsense)
        data = _all(peer)
    assert not data or data.split()[1] in (b"400", b"403", b"505")
    assert b"told" not in data
    assert site.ask("GET", f"{API}/state")[0] == 200


def test_there_are_so_many_connections(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "MOST_CONNECTIONS", 3)
    peers = [site.connect() for _ in range(3)]
    with site.connect() as one_more:
        assert _ended(one_more)
    for peer in peers:
        peer.close()
    wait_until(lambda: _is_served(site), "there is room again")


def test_so_many_listen(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "MOST_LISTENERS", 1)
    with site.listen() as first:
        assert b" 200 " in first.recv(4096)
        assert site.ask("GET", f"{API}/stream")[0] == 503
    wait_until(lambda: _heard(site), "there is room again")


def test_who_lags_is_cut_off_and_nobody_else_waits(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routes, "LAG_SECONDS", 0.2)
    monkeypatch.setattr(feed, "MOST_WAITING_BYTES", 4 << 20)
    with site.listen() as lags, site.listen() as reads:
        assert b" 200 " in reads.recv(4096)
        for number in range(30):  # far more than buffers of the system hold
            site.page.update = {"number": number, "much": "x" * (1 << 20)}
            told = _until(reads, b'"number":%d' % number)
            assert told, number
        lags.settimeout(60)
        data = _all(lags)
    assert b'"number":29' not in data


def test_who_goes_away_is_forgotten(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "MOST_LISTENERS", 2)
    for _ in range(6):
        wait_until(lambda: _heard(site), "the one before has left")


def test_the_end_is_told_to_who_comes_after_it_too(site: Site) -> None:
    with site.listen() as early:
        assert b"event: state" in _until(early, b"event: state")
        site.page.over = {"run": {"id": "told"}, "result": {"state": "valid"}}
        assert b"event: end" in _all(early)
    with site.listen() as late:
        assert b"event: end" in _all(late)


def test_actions_wait_for_their_turn_and_few_may(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routes, "MOST_WAITING", 0)
    assert site.post("hold", {})[0] == 429


def test_no_request_but_an_action_asks_the_run(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def steered(run: str, *_: object) -> None:
        asked.append(run)
        raise RunError("not now")

    for action in ACTIONS:
        monkeypatch.setattr(steer, action.replace("-", "_"), steered)
    monkeypatch.setattr(steer, "let_time_go", lambda _run: False)
    for path in PATHS[:2] + PATHS[3:]:
        assert site.ask("GET", path)[0] == 200
    assert _heard(site)
    assert asked == []
    answers = [site.post(action, body) for action, body in _BODIES.items()]
    assert [status for status, _ in answers] == [409] * 5
    assert asked == ["none"] * 5
    assert answers[0][1]["error"] == "not now"
    assert answers[0][1]["text"].endswith("nothing was changed\n")


_BODIES = {"do": {"text": "a leave"}, "hold": {}, "hold-time": {}, "go": {}, "skip": {"to": "next"}}


def _ended(peer: socket.socket) -> bool:
    try:
        return peer.recv(4096) == b"" or peer.recv(4096) == b""
    except ConnectionError:
        return True


def _is_served(site: Site) -> bool:
    try:
        return site.ask("GET", f"{API}/state")[0] == 200
    except OSError:
        return False


def _heard(site: Site) -> bool:
    with site.listen() as peer:
        return b" 200 " in peer.recv(4096)


def _until(peer: socket.socket, wanted: bytes) -> bytes:
    data = b""
    while wanted not in data:
        part = peer.recv(1 << 20)
        if not part:
            return b""
        data = data[-len(wanted) :] + part
    return data


def _all(peer: socket.socket) -> bytes:
    data = b""
    try:
        while part := peer.recv(1 << 20):
            data += part
    except ConnectionError:
        pass
    return data
