"""The admission rules of Workloads: a document in, field errors out (`docs/spec/api.md` 12).

Pure functions for the admission webhook and any other caller that checks a Workload before it is
stored. They use no server and no model, never raise on a document, and bound their results. In the
order of their use:

    needs_locations, networks_to_review, references_to_review
                                          which facts the caller must read
    review_workload, review_deployment    errors, none, or CannotDecide
    derive_denial                         errors → the refusal on the wire
    warnings                              warnings of an admitted object
"""

from __future__ import annotations

from compute_api_types.validation.denial import Cause, Denial, derive_denial
from compute_api_types.validation.document import Amount, Document, Json, Path
from compute_api_types.validation.errors import ErrorKind, FieldError
from compute_api_types.validation.facts import (
    NETWORKING_OFF,
    UNREAD,
    CannotDecide,
    Facts,
    Review,
    derive_city_codes,
    derive_unavailable,
)
from compute_api_types.validation.requests import NO_PROJECT, parse_project
from compute_api_types.validation.review import (
    DATA_NOT_DELIVERED,
    MOST_ERRORS,
    needs_locations,
    networks_to_review,
    references_to_review,
    review_deployment,
    review_workload,
    warnings,
)

__all__ = [
    "DATA_NOT_DELIVERED",
    "MOST_ERRORS",
    "NETWORKING_OFF",
    "NO_PROJECT",
    "UNREAD",
    "Amount",
    "CannotDecide",
    "Cause",
    "Denial",
    "Document",
    "ErrorKind",
    "Facts",
    "FieldError",
    "Json",
    "Path",
    "Review",
    "derive_city_codes",
    "derive_denial",
    "derive_unavailable",
    "needs_locations",
    "networks_to_review",
    "parse_project",
    "references_to_review",
    "review_deployment",
    "review_workload",
    "warnings",
]
