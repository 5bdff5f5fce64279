"""The API server of a kubeconfig's context: requests with JSON answers, and what refuses them.

Input: $KUBECONFIG or ~/.kube/config, and the name of a context. The client `kubernetes` reads them
(tokens, certificates, plugins) and encrypts; what is sent and understood is here.
"""

from __future__ import annotations

import importlib
import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from runtime.errors import MachineError, RunError

MANAGER = "tstorm"  # who owns the fields that are applied
APPLY = "application/apply-patch+yaml"
TIMEOUT_SECONDS = (10.0, 60.0)  # to connect; to answer
CONFLICT, NOT_FOUND, FORBIDDEN, INVALID = 409, 404, 403, 422
_WRONG = (TypeError, ValueError, KeyError, AttributeError)  # what odd parts of a kubeconfig give
TRIES = 4  # of a request that may be repeated, when the server is away or busy
PAUSE_SECONDS = 0.5  # before the second one, then twice as long
MOST_PAUSE_SECONDS = 10.0  # whatever the server asks for
_REPEATED = ("GET", "DELETE", "PATCH")  # the same a second time; creating is not
_PACKAGES = ("kubernetes", "yaml", "websocket")  # in the order in which they are missed
_EXTRA = "pip install 'tstorm[k8s]', or in a checkout: .venv/bin/pip install -e '.[k8s]'"

JsonObject = dict[str, Any]


class ServerError(RunError):
    """The API server refused a request. `status` is HTTP's, 0 where there was no answer."""

    exit_code = 3  # as a MachineError: the cluster does not do it

    def __init__(
        self, message: str, status: int, reason: str = "", remedy: str = "", pause: float = 0.0
    ) -> None:
        super().__init__(message, remedy)
        self.status = status
        self.pause = pause  # seconds that the server asks to wait
        self.reason = reason  # the server's word, such as AlreadyExists

    @property
    def is_passing(self) -> bool:
        """The server was away or busy: whether it has done what was asked is not known."""
        return self.status in (0, 429) or self.status >= 500


@dataclass(frozen=True, slots=True)
class ApiConnection:
    """`api` is the client's ApiClient. A context manager that hangs up."""

    api: Any
    context: str

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.api.rest_client.pool_manager.clear()

    @property
    def server(self) -> str:
        return str(self.api.configuration.host)

    def get(self, path: str, **query: str) -> JsonObject:
        """ServerError, also for the others."""
        return self._request("GET", path, query)

    def find(self, path: str, **query: str) -> JsonObject | None:
        """The same; None if there is no such object."""
        try:
            return self.get(path, **query)
        except ServerError as error:
            if error.status == NOT_FOUND:
                return None
            raise

    def items(self, path: str, **query: str) -> list[JsonObject]:
        """The objects of a list."""
        return list(self.get(path, **query)["items"])

    def create(self, path: str, value: Mapping[str, object]) -> JsonObject:
        return self._request("POST", path, {"fieldManager": MANAGER}, dict(value))

    def apply(self, path: str, text: str) -> JsonObject:
        """Server-side apply of one YAML document, as it is."""
        query = {"fieldManager": MANAGER, "force": "true"}
        return self._request("PATCH", path, query, text, {"Content-Type": APPLY})

    def delete(self, path: str, uid: str = "", *, after_owned: bool = False) -> None:
        """Asks for it; an object that is not there is deleted already. `uid`: only this one, not
        another that has its name by now. `after_owned`: it stays until what it owns is gone."""
        options: JsonObject = {"propagationPolicy": "Foreground" if after_owned else "Background"}
        if uid:
            options["preconditions"] = {"uid": uid}
        try:
            self._request("DELETE", path, {}, options)
        except ServerError as error:
            if error.status not in (NOT_FOUND, CONFLICT):  # 409: it is being deleted, or another
                raise

    def text(self, path: str, query: Mapping[str, str], seconds: float = TIMEOUT_SECONDS[1]) -> str:
        """An answer that is no JSON: a log, asked for once."""
        answer = self._one_answer("GET", path, query, None, None, seconds)
        return answer.decode("utf-8", "replace")

    def headers(self) -> dict[str, str]:
        """That say who asks, for requests that do not go through here."""
        request = self.api.param_serialize("GET", "/", auth_settings=["BearerToken"])
        return {str(name).lower(): str(value) for name, value in request[2].items()}

    def _request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: object = None,
        headers: Mapping[str, str] | None = None,
    ) -> JsonObject:
        data = self._answer(method, path, query, body, headers)
        try:
            answer = json.loads(data)
        except ValueError:
            answer = None
        if type(answer) is not dict:
            raise ServerError(f"{self.server} answers {method} {path} with no JSON object", 0)
        return answer

    def _answer(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: object = None,
        headers: Mapping[str, str] | None = None,
    ) -> bytes:
        """A server that is away or busy is asked again, a few times."""
        for attempt in range(1, TRIES):
            try:
                return self._one_answer(method, path, query, body, headers)
            except ServerError as error:
                if not error.is_passing or method not in _REPEATED:
                    raise
                pause = max(PAUSE_SECONDS * 2 ** (attempt - 1), error.pause)
            time.sleep(min(pause, MOST_PAUSE_SECONDS))
        return self._one_answer(method, path, query, body, headers)

    def _one_answer(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: object,
        headers: Mapping[str, str] | None,
        seconds: float = TIMEOUT_SECONDS[1],
    ) -> bytes:
        from kubernetes.client import ApiException
        from urllib3.exceptions import HTTPError

        fields: dict[str, str] = {"Accept": "application/json", **(headers or {})}
        try:
            request = self.api.param_serialize(
                method=method,
                resource_path=path,
                query_params=list(query.items()),
                header_params=fields,
                body=body,
                auth_settings=["BearerToken"],
            )
            response = self.api.call_api(*request, _request_timeout=(TIMEOUT_SECONDS[0], seconds))
            data: bytes = response.read()
        except ApiException as error:
            raise self._silent(str(error.reason)) from error
        except (HTTPError, OSError) as error:
            raise self._silent(_root(error)) from error
        if not 200 <= response.status < 300:
            asked = str(response.headers.get("Retry-After", ""))
            pause = float(asked) if asked.isdecimal() else 0.0
            raise _refused(f"{method} {path}", response.status, data, pause)
        return data

    def _silent(self, why: str) -> ServerError:
        return ServerError(
            f"the API server {self.server} does not answer: {why}",
            0,
            remedy="check --context, the kubeconfig and the network (kubectl get nodes)",
        )


def _root(error: BaseException) -> str:
    """The innermost reason: urllib3 wraps it in the address of its own objects."""
    reason = getattr(error, "reason", None)
    if isinstance(reason, BaseException):
        return _root(reason)
    text = str(error)
    return text.rpartition(": ")[2] or type(error).__name__


def _refused(what: str, status: int, data: bytes, pause: float) -> ServerError:
    """The server's own words."""
    try:
        said = json.loads(data)
        message, reason = str(said["message"]), str(said.get("reason", ""))
    except (ValueError, KeyError, TypeError):
        message, reason = data[:200].decode("utf-8", "replace"), ""
    remedy = ""
    if status == 401:
        remedy = "the credentials of the kubeconfig are not valid (any more): log in again"
    elif status == FORBIDDEN and "is forbidden: User" in message:
        remedy = "ask for the rights that docs/kubernetes.md lists, or use another --context"
    return ServerError(f"the API server refuses {what}: {message}", status, reason, remedy, pause)


def demand_client() -> None:
    """MachineError where the packages of the extra are not there, of which everything that is done
    with a cluster needs some."""
    for name in _PACKAGES:
        try:
            importlib.import_module(name)
        except ImportError as error:
            what = f"--backend k8s needs the Python package {name!r}"
            raise MachineError(what, _EXTRA) from error


def connect(context: str | None) -> ApiConnection:
    """RunError for a kubeconfig or context that is none, MachineError without the client."""
    demand_client()
    import yaml
    from kubernetes import client, config
    from kubernetes.config import ConfigException

    place = os.environ.get("KUBECONFIG") or str(Path("~/.kube/config").expanduser())
    _check_context(context, place)
    try:
        settings = client.Configuration()
        load: Any = config.load_kube_config  # it has no types
        load(place, context, client_configuration=settings)
    except (ConfigException, yaml.YAMLError, OSError, *_WRONG) as error:
        raise RunError(
            f"the kubeconfig {place} cannot be used: {error}", "set KUBECONFIG, or mend it"
        ) from error
    settings.retries = False  # who asks decides how often
    return ApiConnection(client.ApiClient(settings), context or "")


def _check_context(context: str | None, place: str) -> None:
    """Before the credentials of the context are looked for. RunError."""
    if not any(Path(name).is_file() for name in place.split(os.pathsep) if name):
        raise RunError(
            f"there is no kubeconfig: {place}", "set KUBECONFIG to the file that your cluster gave"
        )
    names, current = _contexts(place)
    known = f"there are: {', '.join(names) or 'none'}"
    if context is None and not current:
        raise RunError(f"the kubeconfig {place} has no current context", f"give --context; {known}")
    wanted = current if context is None else context
    if wanted not in names:
        which = "its current one" if context is None else "--context"
        raise RunError(f"the kubeconfig has no context {wanted!r} ({which})", known)


def _contexts(place: str) -> tuple[list[str], str]:
    """All contexts of all its files, and the current one, '' if it has none. RunError.

    The client's own list of them fails where the current context is missing or wrong.
    """
    import yaml
    from kubernetes.config import ConfigException
    from kubernetes.config.kube_config import KubeConfigMerger

    try:
        merge: Any = KubeConfigMerger  # it has no types
        found = merge(place).config
        names = sorted(str(one["name"]) for one in found["contexts"])
        return names, str(found.safe_get("current-context") or "")
    except (ConfigException, yaml.YAMLError, OSError, *_WRONG) as error:
        raise RunError(
            f"the kubeconfig {place} cannot be used: {error}", "set KUBECONFIG, or mend it"
        ) from error
