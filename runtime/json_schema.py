"""JSON that others may have written: read within bounds, and of the shape that is needed.

A shape is plain data, so that a new key is one line in a table (runtime/rundir/runfiles.py):

    {"name": TEXT, "message?": TEXT}   an object with these keys; one with `?` may be missing
    [INTEGER]                          a list of such values
    Each(INTEGER)                      an object of any keys with such values
    OneOf(INTEGER, NOTHING)            either
    Row((COUNT, TEXT))                 a list of two

A dataclass is a shape, too: what its annotations say (shape_of). So what comes out of JSON has its
fields written down once, and nothing reads a document by hand. There a NamedTuple is a list of its
fields, and a Mapping whose keys are no texts a list of rows [key, value].

Keys that a shape does not name are left alone: nothing is done with them. Refused everywhere are
numbers of more than 64 bits and what is no number, more than MAX_DEPTH brackets within each other,
and documents of more values than their bytes explain (memory).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from decimal import Decimal, InvalidOperation
from functools import cache, partial
from itertools import chain
from reprlib import repr as shortly
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    NoReturn,
    TypeGuard,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from runtime.errors import RunError

T = TypeVar("T")
MAX_INTEGER = (1 << 64) - 1
MAX_DEPTH = 32
MAX_VALUES = 8_000_000  # of one document: less than 1 GB of memory
REMEDY = "it was edited or damaged: run the experiment again"


@dataclass(frozen=True, slots=True)
class ValueKind:
    """A value that is no container. `name` completes "must be"."""

    name: str
    fits: Callable[[Any], bool]
    type_: type | None = None  # all values of this type fit, and no others


@dataclass(frozen=True, slots=True)
class Each:
    inner: Any


class Row(tuple[Any, ...]):
    """A list with one value of each of these shapes, in their order."""

    __slots__ = ()


class OneOf(tuple[Any, ...]):
    """Kinds of which a value must be one."""

    __slots__ = ()

    def __new__(cls, *kinds: Any) -> OneOf:
        return super().__new__(cls, kinds)


_NUMERAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", re.ASCII)
MAX_DIGITS = 40


def is_decimal(value: object) -> TypeGuard[str]:
    """Whether it is a text that is a decimal number, which may be beyond all floats."""
    if type(value) is not str or len(value) > MAX_DIGITS or not _NUMERAL.fullmatch(value):
        return False
    try:
        return Decimal(value).is_finite()
    except InvalidOperation:  # its exponent has some 19 digits
        return False


def is_numeral(value: object) -> bool:
    """Whether it is a text that is a decimal number, and a finite one as a float."""
    return is_decimal(value) and math.isfinite(float(value))


NUMERAL = ValueKind("a decimal number as a text", is_numeral)
TEXT = ValueKind("a text", lambda value: type(value) is str, str)
INTEGER = ValueKind("an integer", lambda value: type(value) is int, int)
COUNT = ValueKind("an integer of 0 or more", lambda value: type(value) is int and value >= 0)
FLAG = ValueKind("true or false", lambda value: type(value) is bool)
NOTHING = ValueKind("null", lambda value: value is None)
Count = Annotated[int, COUNT]
ANYTHING = ValueKind("anything", lambda _value: True)
SCALAR = ValueKind("a text or number", lambda value: type(value) in (str, int, float, bool))


def _integer(text: str) -> int:
    if len(text) < 20:
        return int(text)
    value = int(text) if len(text) <= 21 else MAX_INTEGER + 1
    if abs(value) > MAX_INTEGER:
        raise ValueError(f"the number {text[:40]} is too large")
    return value


def _real(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"the number {text[:40]} is too large")
    return value


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{twice[:40]!r} is in one object twice")
    return found


_DECODER = json.JSONDecoder(parse_int=_integer, parse_float=_real, parse_constant=_no_number)
# For documents without a number of so many digits that it could be too large: much faster.
_PLAIN_DECODER = json.JSONDecoder(parse_float=_real, parse_constant=_no_number)
_AS_ZEROS = bytes.maketrans(b"123456789", b"000000000")
_MANY_DIGITS = b"0" * 20
_UNIQUE_DECODER = json.JSONDecoder(
    parse_int=_integer, parse_float=_real, parse_constant=_no_number, object_pairs_hook=_once
)
_ALIKE = bytes.maketrans(b"{}", b"[]")
_NO_BRACKETS = bytes(set(range(256)) - set(b'{}[]"'))


def parse(data: bytes, place: str, *, unique: bool = False) -> Any:
    """One document. `place` names it in the RunError. `unique`: a name that an object has twice is
    damage; without it the last one counts."""
    if len(data) > MAX_VALUES and len(data) - len(data.translate(None, b"[{,")) > MAX_VALUES:
        raise RunError(f"{place} holds more than {MAX_VALUES:,} values", REMEDY)
    try:
        long = _MANY_DIGITS in data.translate(_AS_ZEROS)
        decoder = _UNIQUE_DECODER if unique else _DECODER if long else _PLAIN_DECODER
        value = decoder.decode(data.decode("utf-8"))
    except RecursionError:
        raise _too_deep(place) from None
    except ValueError as error:
        raise RunError(f"{place} is damaged: {error}", REMEDY) from error
    if not _is_surely_shallow(data) and not _shallow(value):
        raise _too_deep(place)
    return value


def _too_deep(place: str) -> RunError:
    return RunError(f"{place} is damaged: it is nested too deeply", REMEDY)


def _is_surely_shallow(data: bytes) -> bool:
    """By its brackets alone, of a document in which no text holds any. Much faster than to look."""
    if b"\\" in data:
        return False
    left = data.translate(_ALIKE, _NO_BRACKETS).replace(b'""', b"")
    for _ in range(MAX_DEPTH):
        left = left.replace(b"[]", b"")
    return not left


def _shallow(value: Any) -> bool:
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            inner
            for outer in level
            if isinstance(outer, (dict, list))
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, (dict, list))
        ]
        if not level:
            return True
    return False


class Shape:
    """A shape that is checked often: `fits` says whether, `_check` what does not, and where."""

    __slots__ = ("fits", "spec")

    def __init__(self, spec: Any) -> None:
        self.spec = spec
        self.fits = _compiled(spec)


def check(value: Any, shape: Shape, place: str, remedy: str = REMEDY) -> None:
    """RunError if `value` has not the shape; it names the first value that is wrong."""
    if shape.fits(value):
        return
    try:
        _check(value, shape.spec, "")
    except _MisfitError as misfit:
        raise RunError(f"{place}: {misfit}", remedy) from None
    raise AssertionError("the two ways to check do not agree")


def one_of(words: Collection[str], name: str) -> ValueKind:
    """`name` completes "must be"."""
    return ValueKind(name, lambda value: isinstance(value, str) and value in words)


def integer(least: int, most: int) -> ValueKind:
    return ValueKind(
        f"an integer from {least} to {most}",
        lambda value: type(value) is int and least <= value <= most,
    )


def _compiled(spec: Any) -> Callable[[Any], bool]:
    if isinstance(spec, ValueKind):
        return spec.fits
    if isinstance(spec, OneOf):
        tests = [_compiled(kind) for kind in spec]
        return lambda value: any(test(value) for test in tests)
    if isinstance(spec, Row):
        parts, count = list(map(_compiled, spec)), len(spec)
        return lambda value: (
            type(value) is list
            and len(value) == count
            and all(part(one) for part, one in zip(parts, value, strict=True))
        )
    if isinstance(spec, list):
        inner = spec[0]
        if isinstance(inner, list) and (kind := _type_of(inner[0])):
            return partial(_is_table_of, kind)
        if kind := _type_of(inner):
            return partial(_is_list_of, kind)
        item = _compiled(inner)
        return lambda value: type(value) is list and all(map(item, value))
    if isinstance(spec, Each):
        inner = _compiled(spec.inner)
        return lambda value: type(value) is dict and all(map(inner, value.values()))
    return _compiled_object(spec)


def _type_of(spec: Any) -> type | None:
    return spec.type_ if isinstance(spec, ValueKind) else None


def _is_list_of(wanted: type, value: Any) -> bool:
    return type(value) is list and {wanted}.issuperset(map(type, value))


def _is_table_of(wanted: type, value: Any) -> bool:
    inside = chain.from_iterable
    return _is_list_of(list, value) and {wanted}.issuperset(map(type, inside(value)))


def _compiled_object(spec: dict[str, Any]) -> Callable[[Any], bool]:
    needed = [(key, _compiled(inner)) for key, inner in spec.items() if not key.endswith("?")]
    others = [(key[:-1], _compiled(inner)) for key, inner in spec.items() if key.endswith("?")]

    def fits(value: Any) -> bool:
        if type(value) is not dict:
            return False
        for key, test in needed:
            if key not in value or not test(value[key]):
                return False
        return all(test(value[key]) for key, test in others if key in value)

    return fits


class _MisfitError(Exception):
    """What does not fit where: a path of keys, and the fault."""


def _check(value: Any, shape: Any, where: str) -> None:
    if isinstance(shape, ValueKind):
        if not shape.fits(value):
            _misfit(where, shape.name, value)
    elif isinstance(shape, OneOf):
        if not any(_compiled(kind)(value) for kind in shape):
            for kind in shape:  # where inside it the fault is, if it may be such a one at all
                if type(kind) is type(value):
                    _check(value, kind, where)
            _misfit(where, " or ".join(map(_name, shape)), value)
    elif isinstance(shape, (list, Row)):
        _check_items(value, shape, where)
    elif type(value) is not dict:
        _misfit(where, "an object", value)
    elif isinstance(shape, Each):
        for key, item in value.items():
            _check(item, shape.inner, f"{where}.{key:.40}")
    else:
        _check_fields(value, shape, where)


def _check_items(value: Any, shape: list[Any] | Row, where: str) -> None:
    if type(value) is not list:
        _misfit(where, "a list", value)
    if isinstance(shape, Row) and len(value) != len(shape):
        _misfit(where, f"a list of {len(shape)}", value)
    for number, item in enumerate(value):
        inner = shape[number] if isinstance(shape, Row) else shape[0]
        _check(item, inner, f"{where}[{number}]")


def _name(shape: Any) -> str:
    if isinstance(shape, ValueKind):
        return shape.name
    return "a list" if isinstance(shape, (list, Row)) else "an object"


def _check_fields(value: dict[str, Any], shape: dict[str, Any], where: str) -> None:
    for key, inner in shape.items():
        name = key.removesuffix("?")
        if name in value:
            _check(value[name], inner, f"{where}.{name}")
        elif name == key:
            raise _MisfitError(f"{where}.{name}".lstrip(".") + " is missing")


def _misfit(where: str, wanted: str, value: Any) -> NoReturn:
    raise _MisfitError(f"{where.lstrip('.') or 'it'} must be {wanted}, not {shortly(value)}")


# -- dataclasses ----------------------------------------------------------------------------------


@cache
def shape_of(kind: Any) -> Shape:
    """Of a dataclass by its annotations: fields with a default may be missing. `Annotated[int,
    COUNT]` says more than `int` does; `tuple[int, str]` is a list of two; `Any` is anything. The
    key of a field `if_` is `if`, which Python keeps for itself."""
    return Shape(_spec(kind))


def decoded(kind: type[T], value: Any, place: str, remedy: str = "") -> T:
    """A dataclass out of JSON. RunError that names the first value that is wrong."""
    wanted: Any = kind
    check(value, shape_of(wanted), place, remedy)
    made: T = _maker(wanted)(value)
    return made


def message(kinds: Mapping[str, type], found: Mapping[str, Any], speaker: str) -> Any:
    """A dataclass out of `{"say": KIND, ...}`, which has exactly the fields of its kind. RunError
    that says what is wrong."""
    said = {name: value for name, value in found.items() if name != "say"}
    kind = kinds.get(found["say"]) if isinstance(found["say"], str) else None
    if kind is None:
        raise RunError(f"it sent {found['say']!r:.40}, which is no message of {speaker}")
    shape = shape_of(kind)
    if not shape.fits(said) or said.keys() - _names(kind):
        raise RunError(f"its `{found['say']}` has a wrong {_first_wrong(kind, said)!r:.40}")
    return _maker(kind)(said)


def as_message(kinds: Mapping[str, type], value: Any) -> dict[str, Any]:
    """The inverse of `message`, ready for JSON. Fields that have their default are left out."""
    kind: Any = type(value)
    word = next(word for word, known in kinds.items() if known is kind)
    usual = _defaults(kind)
    return {"say": word} | {
        name: inner for name, inner in encoded(value).items() if usual.get(name, usual) != inner
    }


@cache
def _defaults(kind: Any) -> Mapping[str, object]:
    """As they are in JSON."""
    hints = get_type_hints(kind, include_extras=True)
    usual = {one.name: one.default for one in fields(kind) if one.default is not MISSING}
    return {_key(name): _writer(hints[name])(value) for name, value in usual.items()}


def _first_wrong(kind: type, said: Mapping[str, Any]) -> str:
    spec = shape_of(kind).spec
    needed = {name for name in spec if not name.endswith("?")}
    wrong = sorted((needed - said.keys()) | (said.keys() - _names(kind)))
    if wrong:
        return wrong[0]
    rows = {name.removesuffix("?"): inner for name, inner in spec.items()}
    return next(name for name in said if not Shape(rows[name]).fits(said[name]))


@cache
def _names(kind: type) -> frozenset[str]:
    return frozenset(one.name for one in fields(kind) if one.init)


_PLAIN: Mapping[Any, ValueKind] = {
    int: INTEGER,
    str: TEXT,
    bool: FLAG,
    NoneType: NOTHING,
    Any: ANYTHING,
}


def _spec(kind: Any) -> Any:
    origin, inner = get_origin(kind), get_args(kind)
    if is_dataclass(kind):
        hints = get_type_hints(kind, include_extras=True)
        rows = [one for one in fields(kind) if one.init]
        return {
            f"{_key(one.name)}{'?' * _has_default(one)}": _spec(hints[one.name]) for one in rows
        }
    if _is_row(kind):
        return Row(map(_spec, _hints_of_row(kind).values()))
    if origin is Annotated:
        return inner[1]
    if origin in (Union, UnionType):
        return OneOf(*map(_spec, inner))
    if origin is tuple:
        return [_spec(inner[0])] if inner[-1] is ... else Row(map(_spec, inner))
    if origin is Mapping and inner[0] is not str:
        return [Row(map(_spec, inner))]
    if origin is Mapping:
        return {} if inner[1] is Any else Each(_spec(inner[1]))
    return _PLAIN[kind]


def _key(name: str) -> str:
    return name.removesuffix("_")


def _is_row(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields")


def _hints_of_row(kind: Any) -> Mapping[str, Any]:
    hints = get_type_hints(kind, include_extras=True)
    return {name: hints[name] for name in kind._fields}


def _has_default(one: Field[Any]) -> bool:
    return one.default is not MISSING or one.default_factory is not MISSING


@cache
def _maker(kind: Any) -> Callable[[Any], Any]:
    """What makes a value of this kind of one that has its shape."""
    origin, inner = get_origin(kind), get_args(kind)
    if is_dataclass(kind):
        hints = get_type_hints(kind, include_extras=True)
        make = cast(Any, kind)
        makers = [(name, _key(name), _maker(hints[name])) for name in _names(make)]
        return lambda value: make(
            **{name: maker(value[key]) for name, key, maker in makers if key in value}
        )
    if _is_row(kind):
        columns = list(map(_maker, _hints_of_row(kind).values()))
        return lambda row: kind(*(make(one) for make, one in zip(columns, row, strict=True)))
    if origin is Annotated:
        return _maker(inner[0])
    if origin is tuple and inner[-1] is ...:
        each = _maker(inner[0])
        return tuple if each is _as_it_is else lambda value: tuple(map(each, value))
    if origin is tuple:
        parts = [_maker(part) for part in inner]
        return lambda value: tuple(make(one) for make, one in zip(parts, value, strict=True))
    if origin in (Union, UnionType) and len(inner) == 2 and inner[1] is NoneType:
        there = _maker(inner[0])
        return lambda value: None if value is None else there(value)
    if origin is Mapping and inner[0] is not str:
        pair = list(map(_maker, inner))
        return lambda rows: {pair[0](key): pair[1](one) for key, one in rows}
    if origin is Mapping and inner[1] is not Any:
        each = _maker(inner[1])
        return lambda value: {key: each(one) for key, one in value.items()}
    return _as_it_is


def _as_it_is(value: Any) -> Any:
    return value


def encoded(value: Any) -> Any:
    """What `decoded` makes a dataclass of again, ready for JSON."""
    kind: Any = type(value)
    return _writer(kind)(value)


@cache
def _writer(kind: Any) -> Callable[[Any], Any]:
    """What makes JSON of a value of this kind; the inverse of `_maker`."""
    origin, inner = get_origin(kind), get_args(kind)
    if is_dataclass(kind):
        hints = get_type_hints(kind, include_extras=True)
        rows = [one.name for one in fields(kind) if one.init]
        writers = [(name, _key(name), _writer(hints[name])) for name in rows]
        return lambda value: {key: write(getattr(value, name)) for name, key, write in writers}
    if origin is Annotated:
        return _writer(inner[0])
    if origin is tuple and inner[-1] is ...:
        each = _writer(inner[0])
        return lambda value: [each(one) for one in value]
    if origin is tuple or _is_row(kind):
        kinds = inner or _hints_of_row(kind).values()
        parts = [_writer(part) for part in kinds]
        return lambda row: [write(one) for write, one in zip(parts, row, strict=True)]
    if origin in (Union, UnionType) and len(inner) == 2 and inner[1] is NoneType:
        there = _writer(inner[0])
        return lambda value: None if value is None else there(value)
    if origin is Mapping and inner[0] is not str:
        key, item = map(_writer, inner)
        return lambda value: [[key(one), item(value[one])] for one in sorted(value)]
    if origin is Mapping:
        item = _writer(inner[1])
        return lambda value: {one: item(value[one]) for one in value}
    return _as_it_is
