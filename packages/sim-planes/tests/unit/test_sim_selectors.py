from __future__ import annotations

import pytest

from compute_sim_planes.api_server.selectors import (
    FieldSelectorError,
    LabelSelectorError,
    parse_field_selector,
    parse_label_selector,
)
from compute_sim_planes.json_types import JsonObject

LABELS = {"app": "web", "tier": "front", "size": "10", "topology.datum.net/city-code": "DFW"}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "app=web",
        "app==web",
        " app = web , tier = front ",
        "app!=db",
        "other!=x",
        "app in (web,db)",
        "app in ( web , db )",
        "app notin (db)",
        "other notin (db)",
        "app",
        "!other",
        "size>9",
        "size<11",
        "topology.datum.net/city-code=DFW",
        "app=web,!other,tier in (front)",
    ],
)
def test_labels_that_fit_are_selected(text: str) -> None:
    assert parse_label_selector(text).matches(LABELS)


@pytest.mark.parametrize(
    "text",
    [
        "app=db",
        "app!=web",
        "app in (db)",
        "app notin (web)",
        "other",
        "!app",
        "size>10",
        "size<10",
        "app>1",
        "other>1",
        "app=web,tier=back",
        "app=",
        "topology.datum.net/city-code=dfw",
    ],
)
def test_labels_that_do_not_fit_are_not_selected(text: str) -> None:
    assert not parse_label_selector(text).matches(LABELS)


def test_an_empty_value_is_a_value() -> None:
    assert parse_label_selector("app=").matches({"app": ""})
    assert parse_label_selector("app in (,x)").matches({"app": ""})


@pytest.mark.parametrize(
    "text",
    [
        "a b",
        "app in web",
        "app in (web",
        "=x",
        "a=b=c",
        "app>x",
        "-a=b",
        "a=-b",
        "a,,b",
        "a=" + "x" * 64,
    ],
)
def test_a_label_selector_that_cannot_be_read_is_an_error_and_never_everything(text: str) -> None:
    with pytest.raises(LabelSelectorError):
        parse_label_selector(text)


FOUND: JsonObject = {"metadata": {"name": "a", "namespace": "n"}, "status": {"phase": "Active"}}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "metadata.name=a",
        "metadata.name==a",
        "metadata.name!=b",
        "status.phase=Active,metadata.namespace=n",
        "spec.nodeName=",
        "spec.nodeName!=x",
    ],
)
def test_fields_that_fit_are_selected(text: str) -> None:
    assert parse_field_selector(text).matches(FOUND)


@pytest.mark.parametrize("text", ["metadata.name=b", "metadata.name!=a", "spec.nodeName=x"])
def test_fields_that_do_not_fit_are_not_selected(text: str) -> None:
    assert not parse_field_selector(text).matches(FOUND)


def test_escaped_signs_are_part_of_the_value() -> None:
    selector = parse_field_selector(r"metadata.name=a\,b\=c\\d")

    assert selector.matches({"metadata": {"name": r"a,b=c\d"}})


def test_a_field_the_kind_does_not_offer_is_refused() -> None:
    with pytest.raises(FieldSelectorError, match=r"field label not supported: spec\.x"):
        parse_field_selector("spec.x=1", frozenset({"metadata.name"}))


def test_a_field_selector_without_comparison_is_an_error() -> None:
    with pytest.raises(FieldSelectorError, match="can't understand"):
        parse_field_selector("metadata.name")
