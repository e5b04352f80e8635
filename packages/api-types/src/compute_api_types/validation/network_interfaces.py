"""Rules 42, 43, 59 and 44: the networks of an instance, and the right to use them.

Rule 44 needs a SubjectAccessReview per network. This module lists the names to review and evaluates
the answers; it sends no request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from compute_api_types.names import is_dns_label
from compute_api_types.validation.document import as_list
from compute_api_types.validation.errors import forbidden, internal_error, invalid, required
from compute_api_types.validation.facts import Review
from compute_api_types.validation.names import dns_label_problems

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from compute_api_types.validation.document import Node
    from compute_api_types.validation.errors import Errors


def review_network_interfaces(
    template_spec: Node, namespace: str, reviews: Mapping[str, Review]
) -> Errors:
    """The interfaces of a template; rule 44 checks networks with an entry in `reviews`."""
    if not as_list(template_spec.content.get("networkInterfaces")):  # 42
        detail = "an instance has at least one interface"
        yield required(template_spec.path.field("networkInterfaces"), detail)
    for interface in template_spec.elements("networkInterfaces", named=False):
        network = interface.section("network")
        for problem in dns_label_problems(network.text("name")):  # 43
            yield invalid(network.path.field("name"), network.text("name"), problem)
        if not _is_local(network, namespace):  # 59
            detail = "only networks of the Workload's own namespace can be used"
            yield forbidden(network.path.field("namespace"), detail)
        elif network.text("name") in reviews:  # 44
            yield from _review_permission(network, reviews[network.text("name")])


def _review_permission(network: Node, review: Review) -> Errors:
    if review is Review.DENIED:
        yield forbidden(network.path, "you may not use this network: the verb use is needed")
    elif review is Review.FAILED:
        detail = "your right to use this network could not be checked, try again"
        yield internal_error(network.path, detail)


def local_networks(template_spec: Node, namespace: str) -> Iterator[str]:
    """What rule 44 is about: in the Workload's namespace, with a name a Network can have."""
    for interface in template_spec.elements("networkInterfaces", named=False):
        network = interface.section("network")
        if _is_local(network, namespace) and is_dns_label(network.text("name")):
            yield network.text("name")


def _is_local(network: Node, namespace: str) -> bool:
    return network.text("namespace") in {"", namespace}
