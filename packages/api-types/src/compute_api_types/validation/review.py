"""The admission rules of `docs/spec/api.md` 12, put together: facts in, field errors out.

The caller first asks which facts are needed (`needs_locations`, `networks_to_review`), reads those
and no others, and then calls `review_workload`. Nothing here reads, waits or keeps state, and no
document makes it raise.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

from compute_api_types.validation.document import root
from compute_api_types.validation.errors import forbidden
from compute_api_types.validation.facts import (
    NETWORKING_OFF,
    UNREAD,
    CannotDecide,
    Facts,
    Review,
    derive_unavailable,
)
from compute_api_types.validation.network_interfaces import (
    local_networks,
    review_network_interfaces,
)
from compute_api_types.validation.placements import named_cities, review_placements
from compute_api_types.validation.runtime import review_runtime
from compute_api_types.validation.shape import review_shape
from compute_api_types.validation.template_metadata import review_template_metadata
from compute_api_types.validation.template_size import derive_largest, review_template_size
from compute_api_types.validation.updates import is_admitted_unread, new_errors
from compute_api_types.validation.volumes import review_volumes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from compute_api_types.validation.document import Document, Node
    from compute_api_types.validation.errors import Errors, FieldError

# One request may carry a megabyte of errors; stopping at a hundred bounds time and memory.
MOST_ERRORS: Final = 100


def needs_locations(wanted: Document, found: Document | None) -> bool:
    """Whether a city is named that was not named before, so that Locations decide (12.2, 3)."""
    return not is_admitted_unread(wanted, found) and _names_new_city(wanted, found)


def networks_to_review(wanted: Document, found: Document | None) -> tuple[str, ...]:
    """The networks that need a SubjectAccessReview, each once, in their order (12.2, 3)."""
    return () if is_admitted_unread(wanted, found) else _new_networks(wanted, found)


def review_workload(
    wanted: Document, found: Document | None, facts: Facts
) -> tuple[FieldError, ...] | CannotDecide:
    """The errors of a create (`found` is None) or an update, in the order of 12.3.

    At most `MOST_ERRORS`, and one more as a sign that there are others.
    """
    if is_admitted_unread(wanted, found):
        return ()
    cities: frozenset[str] | None = None
    if _names_new_city(wanted, found):
        if facts.cities is UNREAD:
            return derive_unavailable(facts.project)
        cities = None if facts.cities is NETWORKING_OFF else facts.cities
    reviews = _needed_reviews(wanted, found, facts)

    largest = derive_largest(None if found is None else _template(root(found)))

    def review_rules(workload: Node) -> Errors:
        yield from review_template_size(_template(workload), largest)  # 66
        yield from _review_rules(workload, cities, reviews)

    # As on an API server, a document with wrong types is not checked further: every other error
    # could follow from them.
    return _first(_review_types, wanted, found) or _first(review_rules, wanted, found)


def warnings(document: Document) -> tuple[str, ...]:
    """Warnings for the user of an object that is admitted (section 5)."""
    for placement in root(document).section("spec").elements("placements"):
        settings = placement.section("scaleSettings")
        if settings.integer("maxReplicas") is not None:
            path = settings.path.field("maxReplicas")
            return (f"{path.text}: stored, but not acted on yet: minReplicas instances run",)
    return ()


def _first(
    review: Callable[[Node], Errors], wanted: Document, found: Document | None
) -> tuple[FieldError, ...]:
    errors = review(root(wanted))
    if found is not None:
        errors = new_errors(errors, review(root(found, like=wanted)))
    return tuple(islice(errors, MOST_ERRORS + 1))


def _template(workload: Node) -> Node:
    return workload.section("spec").section("template")


def _review_types(workload: Node) -> Errors:
    return review_shape(workload.content)


def _review_rules(
    workload: Node, cities: frozenset[str] | None, reviews: Mapping[str, Review]
) -> Errors:
    """All rules in the order of evaluation of 12.3."""
    namespace = workload.section("metadata").text("namespace")
    spec = workload.section("spec")
    template = spec.section("template")
    template_spec = template.section("spec")
    yield from review_template_metadata(template)  # 1–4, 57, 58
    yield from review_volumes(template_spec)  # 5–22
    yield from review_runtime(template_spec)  # 23–41
    yield from review_network_interfaces(template_spec, namespace, reviews)  # 42, 43, 59, 44
    for name in ("location", "controller"):  # 60, 61
        if template_spec.has(name):
            yield forbidden(template_spec.path.field(name), "set by the platform")
    yield from review_placements(spec, cities)  # 45–56, 62–65


def _needed_reviews(wanted: Document, found: Document | None, facts: Facts) -> Mapping[str, Review]:
    """The reviews that rule 44 uses; a missing one counts as failed."""
    if facts.reviews is NETWORKING_OFF:
        return {}
    answers = facts.reviews
    return {name: answers.get(name, Review.FAILED) for name in _new_networks(wanted, found)}


def _names_new_city(wanted: Document, found: Document | None) -> bool:
    return not _cities(wanted) <= _cities(found or {})


def _new_networks(wanted: Document, found: Document | None) -> tuple[str, ...]:
    known = _networks(found or {})
    return tuple(name for name in _networks(wanted) if name not in known)


def _cities(document: Document) -> frozenset[str]:
    return named_cities(root(document).section("spec"))


def _networks(document: Document) -> dict[str, None]:
    """The networks a document refers to in its own namespace, as a set that keeps their order."""
    workload = root(document)
    namespace = workload.section("metadata").text("namespace")
    template_spec = workload.section("spec").section("template").section("spec")
    return dict.fromkeys(local_networks(template_spec, namespace))
