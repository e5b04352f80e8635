"""What holds for the admission rules whatever the document: an answer, bounded text, fair updates.

Documents are grown from the shape the rules expect, with values that meet each other often, and
with anything else in places, so that most of them break several rules at once.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from hypothesis import given, settings
from hypothesis import strategies as st

from compute_api_types.validation import (
    NETWORKING_OFF,
    UNREAD,
    CannotDecide,
    Document,
    ErrorKind,
    Facts,
    FieldError,
    Json,
    Review,
    derive_denial,
    needs_locations,
    networks_to_review,
    review_workload,
    warnings,
)
from compute_api_types.validation.document import name_of
from compute_api_types.validation.shape import WORKLOAD, Elements, Entries, Fields, Scalar, Shape

Draw: TypeAlias = st.DrawFn

# Few enough to collide, and what the rules look for among them.
WORDS: Final = (
    "",
    "a",
    "b",
    "A",
    "DFW",
    "dfw",
    "LHR",
    "default",
    "cpu",
    "ext4",
    "pd-standard",
    "datumcloud/d1-standard-2",
    "datumcloud/ubuntu-2204-lts",
    "OrderedReady",
    "ubuntu:ssh-rsa AAAA",
    "-\x00\n\u202e",
    "x" * 300,
)
KEYS: Final[tuple[str, ...]] = (
    "app",
    "storage",
    "compute.datumapis.com/ssh-keys",
    "meta.datumapis.com/\n",
)
AMOUNTS: Final[tuple[str | int, ...]] = ("10Gi", "10240Mi", "1.5Gi", "200Gi", "-1", 0)
FACTS: Final = Facts(
    "acme", frozenset({"DFW", "dfw"}), {"a": Review.ALLOWED, "default": Review.DENIED}
)

# A busy machine is no reason to fail.
unhurried: Final = settings(deadline=None)

scalars: Final = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(max_size=8),
    st.just(10**1000),
)
anything: Final[st.SearchStrategy[Json]] = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)


@st.composite
def grown(draw: Draw, shape: Shape, *, strict: bool = False) -> Json:
    """A value of this shape, or, unless strict, once in a while any other."""
    if not strict and draw(st.integers(0, 19)) == 19:
        return draw(anything)
    match shape:
        case Fields(fields=fields):
            present = [name for name in fields if draw(st.integers(0, 3))]
            return {name: draw(grown(fields[name], strict=strict)) for name in present}
        case Entries(each=each):
            keys = draw(st.sets(st.sampled_from(KEYS), max_size=3))
            return {key: draw(grown(each, strict=strict)) for key in sorted(keys)}
        case Elements(each=each):
            return draw(st.lists(grown(each, strict=strict), max_size=3))
        case Scalar.TEXT:
            return draw(st.sampled_from(WORDS))
        case Scalar.INTEGER:
            return draw(st.integers(-1, 3))
        case Scalar.QUANTITY:
            return draw(st.sampled_from(AMOUNTS))


@st.composite
def documents(draw: Draw, *, strict: bool = False) -> Document:
    fields = WORKLOAD.fields
    return {name: draw(grown(shape, strict=strict)) for name, shape in fields.items()}


@st.composite
def moved(draw: Draw, value: Json, shape: Shape) -> Json:
    """The same value with its named elements in another order; those of one name keep theirs."""
    match shape:
        case Fields(fields=fields) if isinstance(value, Mapping):
            return {
                name: draw(moved(member, fields[name])) if name in fields else member
                for name, member in value.items()
            }
        case Elements(each=each, named=named) if isinstance(value, Sequence) and not isinstance(
            value, str
        ):
            elements = [draw(moved(element, each)) for element in value]
            return draw(reordered(elements)) if named else elements
        case _:
            return value


@st.composite
def reordered(draw: Draw, elements: list[Json]) -> list[Json]:
    names = draw(st.permutations([name_of(element) for element in elements]))
    left: dict[str, list[Json]] = {}
    for element in elements:
        left.setdefault(name_of(element), []).append(element)
    return [left[name].pop(0) for name in names]


def judged(wanted: Document, stored: Document | None, facts: Facts = FACTS) -> list[FieldError]:
    errors = review_workload(wanted, stored, facts)
    assert not isinstance(errors, CannotDecide)
    return list(errors)


@unhurried
@given(documents(), st.one_of(st.none(), documents()))
def test_every_document_gets_an_answer_that_can_be_shown(
    wanted: Document, stored: Document | None
) -> None:
    errors = judged(wanted, stored)
    for error in errors:
        assert isinstance(error.kind, ErrorKind)
        assert error.path.text
        assert error.body
        assert error.text.isprintable()
        assert len(error.text) < 3000
    if errors:
        json.dumps(derive_denial(wanted, errors).as_status()).encode("utf-8")
    assert all(warning.isprintable() for warning in warnings(wanted))


@unhurried
@given(st.dictionaries(st.sampled_from(("metadata", "spec", "x")), anything))
def test_any_json_gets_an_answer(document: Document) -> None:
    assert judged(document, None), "no random value is a Workload"


@unhurried
@given(documents(), anything)
def test_an_unchanged_spec_is_admitted_unread(document: Document, metadata: Json) -> None:
    wanted = {**document, "metadata": metadata}
    nothing_read = Facts("acme", UNREAD, {})
    assert judged(wanted, document, nothing_read) == []
    assert not needs_locations(wanted, document)
    assert networks_to_review(wanted, document) == ()


@unhurried
@given(st.data())
def test_moving_named_elements_brings_no_error_in(data: st.DataObject) -> None:
    stored = data.draw(documents())
    wanted = data.draw(moved(stored, WORKLOAD))
    assert isinstance(wanted, Mapping)
    # The first attachment of a virtual machine is its boot volume: moving that one is an edit.
    assert [error.text for error in judged(wanted, stored) if not is_boot_volume(error)] == []


def is_boot_volume(error: FieldError) -> bool:
    return error.path.text.endswith("virtualMachine.volumeAttachments[0].name")


@unhurried
@given(documents(strict=True), documents(strict=True))
def test_an_update_is_refused_for_errors_of_the_wanted_object_only(
    wanted: Document, stored: Document
) -> None:
    # Rule 44 must not depend on which networks the stored object uses.
    facts = Facts("acme", NETWORKING_OFF, NETWORKING_OFF)
    brought_in = judged(wanted, stored, facts)
    assert not Counter(map(text_of, brought_in)) - Counter(
        map(text_of, judged(wanted, None, facts))
    )


def text_of(error: FieldError) -> str:
    return error.text


@unhurried
@given(documents(), st.one_of(st.none(), documents()))
def test_facts_that_are_not_needed_do_not_matter(wanted: Document, stored: Document | None) -> None:
    asked = networks_to_review(wanted, stored)
    answers = dict.fromkeys(asked, Review.ALLOWED)
    others = {"a": Review.DENIED, "b": Review.FAILED, "default": Review.DENIED}
    cities = frozenset({"DFW"}) if needs_locations(wanted, stored) else UNREAD
    exact = judged(wanted, stored, Facts("acme", cities, answers))
    assert exact == judged(wanted, stored, Facts("acme", frozenset({"DFW"}), others | answers))
