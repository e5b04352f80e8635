"""The schema of one version of a custom kind, as the server uses it: prune, default, validate.

The three steps are apart so that the server can run them in the order a real one does: a request is
defaulted and pruned when it is read, validated after admission, and what is read from storage is
defaulted once more, because the CRD may have gained a default since.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import orjson

from compute_sim_planes.api_server.field_problems import FieldProblem, ProblemKind
from compute_sim_planes.api_server.schema_model import Schema, SchemaError, parse_schema
from compute_sim_planes.api_server.schema_shaping import apply_defaults, prune
from compute_sim_planes.api_server.schema_validation import validate
from compute_sim_planes.api_server.structural import structural_problems
from compute_sim_planes.json_types import JsonObject

__all__ = [
    "CompiledSchema",
    "FieldProblem",
    "ProblemKind",
    "SchemaError",
    "compile_schema",
    "structural_problems",
]


@dataclass(frozen=True, slots=True)
class CompiledSchema:
    """What a kind's objects may look like. Every method builds a new value and leaves its argument
    alone.
    """

    root: Schema
    document: JsonObject

    def prune(self, found: JsonObject) -> JsonObject:
        """The object without the fields nobody declared; metadata is not this schema's matter."""
        return prune(found, self.root)[0]

    def unknown_fields(self, found: JsonObject) -> list[str]:
        """Paths `prune` would drop, for requests with `fieldValidation` Warn or Strict."""
        return prune(found, self.root)[1]

    def default(self, found: JsonObject) -> JsonObject:
        """The object with defaults filled in, and nulls replaced by them or dropped."""
        return apply_defaults(found, self.root)

    def validate(self, found: JsonObject) -> list[FieldProblem]:
        """Everything that is wrong with the object; empty when it may be stored."""
        return list(validate(found, self.root))


def compile_schema(openapi_v3_schema: JsonObject) -> CompiledSchema:
    """The schema, ready for use. It must be structural: `structural_problems` says so before a CRD
    is taken.
    """
    return _compile(orjson.dumps(openapi_v3_schema))


@lru_cache(maxsize=256)
def _compile(text: bytes) -> CompiledSchema:
    """Once per schema and process: many planes have the same kinds, and nothing changes one."""
    document: JsonObject = orjson.loads(text)
    return CompiledSchema(parse_schema(document), document)
