"""What is sent to an agent is what it reads."""

import dataclasses
import json
from collections.abc import Mapping
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.agent.process.orders import ORDERS, NoFields, ResumeOrder, request
from runtime.json_schema import decoded, encoded

# At least one of them is of each kind of value that an order has.
VALUES = (
    *(0, 1, 2, 9, 4000, 65534, 70_000, -5),
    *("", "eth0", "10.0.0.1", "fd00::1", "10.0.0.0/8", "127.0.0.1 a.0\n", "/proc/9/ns/net"),
    *("12345678-1234-1234-1234-123456789abc", "join", "leave", "crash", "set_up", "ready"),
)
KINDS = sorted({*ORDERS.values(), ResumeOrder} - {NoFields}, key=lambda kind: kind.__name__)


def values(kind: Any) -> st.SearchStrategy[Any]:
    """Of what an annotation says."""
    origin, inner = get_origin(kind), get_args(kind)
    if dataclasses.is_dataclass(kind) or hasattr(kind, "_fields"):
        return st.builds(kind, **dict(map(of_field, fields(kind).items())))
    if origin is Annotated:
        return st.sampled_from([one for one in VALUES if inner[1].fits(one)])
    if origin is tuple and inner[-1] is ...:
        return st.lists(values(inner[0]), max_size=3).map(tuple)
    if origin is Mapping:
        return st.dictionaries(values(inner[0]), values(inner[1]), max_size=3)
    return st.sampled_from([one for one in VALUES if type(one) is kind])


def fields(kind: Any) -> Mapping[str, Any]:
    return get_type_hints(kind, include_extras=True)


def of_field(field: tuple[str, Any]) -> tuple[str, st.SearchStrategy[Any]]:
    return field[0], values(field[1])


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@given(st.data())
def test_an_order_is_read_as_it_was_sent(kind: type, data: st.DataObject) -> None:
    order = data.draw(values(kind))
    assert decoded(kind, json.loads(json.dumps(encoded(order))), "it") == order
    if kind is not ResumeOrder:
        assert ORDERS[str(request(order)["do"])] is kind
