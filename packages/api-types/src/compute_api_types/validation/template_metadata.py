"""Rules 57 and 58: which labels and annotations a template may carry.

They are copied to Instances, where keys under our prefixes are evidence of identity: a tenant with
the right to write them could pass an Instance off as another tenant's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from compute_api_types.labels import RESERVED_PREFIXES, USER_ANNOTATIONS, is_reserved
from compute_api_types.validation.errors import forbidden
from compute_api_types.validation.ssh_keys import review_ssh_keys

if TYPE_CHECKING:
    from compute_api_types.validation.document import Node
    from compute_api_types.validation.errors import Errors

_DETAIL: Final = f"keys under {' and '.join(RESERVED_PREFIXES)} are set by the platform"


def review_template_metadata(template: Node) -> Errors:
    yield from review_ssh_keys(template)  # 1–4
    metadata = template.section("metadata")
    for name, allowed in (("labels", ()), ("annotations", USER_ANNOTATIONS)):  # 57, 58
        for key in sorted(metadata.members(name)):
            if is_reserved(key) and key not in allowed:
                yield forbidden(metadata.path.field(name).key(key), _DETAIL)
