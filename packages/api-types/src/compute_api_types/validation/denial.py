"""A refusal as it goes back over the wire (`docs/spec/api.md` 12.1).

The webhook's host turns it into an AdmissionReview; everything that a user or a client library
reads, message, reason and causes, is decided here. Its size is bounded, whatever was written.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from compute_api_types.validation.document import root
from compute_api_types.validation.rendering import quote
from compute_api_types.validation.review import MOST_ERRORS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compute_api_types.validation.document import Document, Json
    from compute_api_types.validation.errors import FieldError

GROUP: Final = "compute.datumapis.com"
KIND: Final = "Workload"
INVALID: Final = "Invalid"
UNPROCESSABLE: Final = 422


@dataclass(frozen=True, slots=True)
class Cause:
    """One error: its reason, its text without the path, and the path."""

    reason: str
    message: str
    field: str


@dataclass(frozen=True, slots=True)
class Denial:
    """Refused: 422 Invalid, with one cause per error in order."""

    name: str
    message: str
    causes: tuple[Cause, ...]
    reason: str = INVALID
    code: int = UNPROCESSABLE
    kind: str = KIND

    def as_status(self) -> dict[str, Json]:
        """The `status` of an AdmissionResponse."""
        causes: list[Json] = [
            {"reason": cause.reason, "message": cause.message, "field": cause.field}
            for cause in self.causes
        ]
        return {
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "code": self.code,
            "details": {"name": self.name, "group": GROUP, "kind": self.kind, "causes": causes},
        }


def derive_denial(document: Document, errors: Sequence[FieldError], *, kind: str = KIND) -> Denial:
    """The refusal of a document for these errors; there must be one at least."""
    shown = errors[:MOST_ERRORS]
    texts = [error.text for error in shown]
    if len(errors) > len(shown):
        texts.append("and more")
    name = root(document).section("metadata").text("name")
    listed = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    return Denial(
        name=name,
        message=f"{kind}.{GROUP} {quote(name)} is invalid: {listed}",
        causes=tuple(Cause(error.kind.value, error.body, error.path.text) for error in shown),
        kind=kind,
    )
