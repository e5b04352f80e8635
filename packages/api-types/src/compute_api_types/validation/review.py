"""The admission rules of `docs/spec/api.md` 12, put together: facts in, field errors out.

The caller first asks which facts are needed (`needs_locations`, `networks_to_review`,
`references_to_review`), reads those and no others, and then calls `review_workload`. Nothing here
reads, waits or keeps state, and no document makes it raise.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

from compute_api_types.referenced_data.references import MOST_REFERENCES, references
from compute_api_types.validation.document import root
from compute_api_types.validation.errors import forbidden
from compute_api_types.validation.facts import (
    NETWORKING_OFF,
    UNREAD,
    CannotDecide,
    Facts,
    Review,
    derive_unavailable,
    derive_unreviewed,
)
from compute_api_types.validation.map_keys import review_map_keys
from compute_api_types.validation.network_interfaces import (
    local_networks,
    review_network_interfaces,
)
from compute_api_types.validation.placements import named_cities, review_placements
from compute_api_types.validation.references import (
    find_new_references,
    review_access,
    review_count,
    review_references,
)
from compute_api_types.validation.runtime import review_runtime
from compute_api_types.validation.shape import review_shape
from compute_api_types.validation.template_metadata import review_template_metadata
from compute_api_types.validation.template_size import derive_largest, review_template_size
from compute_api_types.validation.updates import is_admitted_unread, new_errors
from compute_api_types.validation.volumes import review_volumes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from compute_api_types.referenced_data.references import Reference
    from compute_api_types.validation.document import Document, Node
    from compute_api_types.validation.errors import Errors, FieldError

# One request may carry a megabyte of errors; stopping at a hundred bounds time and memory.
MOST_ERRORS: Final = 100
DATA_NOT_DELIVERED: Final = (
    "references to ConfigMaps and Secrets are stored but not delivered to cells"
)


def needs_locations(wanted: Document, found: Document | None) -> bool:
    """Whether a city is named that was not named before, so that Locations decide (12.2, 3)."""
    return not is_admitted_unread(wanted, found) and _names_new_city(wanted, found)


def networks_to_review(wanted: Document, found: Document | None) -> tuple[str, ...]:
    """The networks that need a SubjectAccessReview, each once, in their order (12.2, 3)."""
    return () if is_admitted_unread(wanted, found) else _new_networks(wanted, found)


def references_to_review(wanted: Document, found: Document | None) -> tuple[Reference, ...]:
    """The ConfigMaps and Secrets that need a SubjectAccessReview (referenced-data.md 7).

    For Workloads and WorkloadDeployments alike: both have `spec.template`. At most 64, so that no
    document causes more reviews; one that adds more is refused (rule 78).
    """
    if is_admitted_unread(wanted, found):
        return ()
    return _new_references(wanted, found)[:MOST_REFERENCES]


def review_deployment(
    wanted: Document, found: Document | None, reviews: Mapping[str, Review]
) -> tuple[FieldError, ...] | CannotDecide:
    """The errors of a WorkloadDeployment that no operator of ours wrote: rights to its data alone.

    One that adds more objects than are reviewed is refused (rule 78).
    """
    if is_admitted_unread(wanted, found):
        return ()
    needed = _needed_data_reviews(wanted, found, reviews)
    errors = tuple(review_access(_template_spec(wanted), needed))
    return errors or _review_unanswered(wanted, found, needed)


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
    data_reviews = (
        None
        if facts.data_reviews is None
        else _needed_data_reviews(wanted, found, facts.data_reviews)
    )

    def review_rules(workload: Node) -> Errors:
        yield from review_template_size(_template(workload), largest)  # 66
        yield from _review_rules(workload, cities, reviews, data_reviews)

    # As on an API server, a document with wrong types is not checked further: every other error
    # could follow from them.
    errors = _first(_review_types, wanted, found) or _first(review_rules, wanted, found)
    if errors or data_reviews is None:
        return errors
    return _review_unanswered(wanted, found, data_reviews)


def warnings(document: Document, *, delivers_data: bool = False) -> tuple[str, ...]:
    """Warnings for the user of an object that is admitted (referenced-data.md)."""
    named = () if delivers_data else references(_raw_template(document))
    return (DATA_NOT_DELIVERED,) * bool(named)


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
    workload: Node,
    cities: frozenset[str] | None,
    reviews: Mapping[str, Review],
    data_reviews: Mapping[str, Review] | None,
) -> Errors:
    """All rules in the order of evaluation of 12.3."""
    namespace = workload.section("metadata").text("namespace")
    spec = workload.section("spec")
    template = spec.section("template")
    template_spec = template.section("spec")
    yield from review_template_metadata(template)  # 1–4, 57, 58
    yield from review_map_keys(template)  # 69
    yield from review_volumes(template_spec, allows_items=data_reviews is not None)  # 5–22
    yield from review_runtime(template_spec)  # 23–41
    if data_reviews is not None:
        yield from review_references(template_spec, data_reviews)  # 70–79
    yield from review_network_interfaces(template_spec, namespace, reviews)  # 42, 43, 59, 44
    for name in ("location", "controller"):  # 60, 61
        if template_spec.has(name):
            yield forbidden(template_spec.path.field(name), "set by the platform")
    yield from review_placements(spec, cities)  # 45–56, 62–65, 67, 68


def _needed_reviews(wanted: Document, found: Document | None, facts: Facts) -> Mapping[str, Review]:
    """The reviews that rule 44 uses; a missing one counts as failed."""
    if facts.reviews is NETWORKING_OFF:
        return {}
    answers = facts.reviews
    return {name: answers.get(name, Review.FAILED) for name in _new_networks(wanted, found)}


def _needed_data_reviews(
    wanted: Document, found: Document | None, answers: Mapping[str, Review]
) -> Mapping[str, Review]:
    """The reviews that rule 79 uses; a missing one counts as failed."""
    return {
        reference.token: answers.get(reference.token, Review.FAILED)
        for reference in _new_references(wanted, found)
    }


def _review_unanswered(
    wanted: Document, found: Document | None, reviews: Mapping[str, Review]
) -> tuple[FieldError, ...] | CannotDecide:
    """What no answer allows: more new objects than are reviewed, and failed reviews.

    A stored template with 70 objects may have its error of rule 78 in an update as well; the
    number of new ones is bounded whatever is stored.
    """
    errors = tuple(review_count(_template_spec(wanted), _new_references(wanted, found)))
    failed = (token for token, review in reviews.items() if review is Review.FAILED)
    first = next(failed, None)
    return errors if errors or first is None else derive_unreviewed(first)


def _new_references(wanted: Document, found: Document | None) -> tuple[Reference, ...]:
    return find_new_references(_raw_template(wanted), _raw_template(found or {}))


def _raw_template(document: Document) -> Document:
    return _template(root(document)).content


def _template_spec(document: Document) -> Node:
    return _template(root(document)).section("spec")


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
