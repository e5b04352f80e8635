"""The compiled schema of one version of a custom kind: prune, default, validate.

The three steps are separate because a real server runs them at different times: a request is
defaulted and pruned when it is decoded and validated after admission, and an object from storage is
defaulted again, because the CRD may have gained a default since.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import orjson

from compute_sim_planes.api_server.schema.field_problems import FieldProblem, ProblemKind
from compute_sim_planes.api_server.schema.model import Schema, SchemaError, parse_schema
from compute_sim_planes.api_server.schema.prune_and_default import apply_defaults, prune
from compute_sim_planes.api_server.schema.rule_evaluation import BrokenRule, check_rules
from compute_sim_planes.api_server.schema.structural import structural_problems
from compute_sim_planes.api_server.schema.validation import validate
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
    """The schema of a kind's objects. Every method returns a new value and does not change its
    argument.
    """

    root: Schema
    document: JsonObject

    def prune(self, document: JsonObject) -> JsonObject:
        """The object without undeclared fields; metadata is not covered by the schema."""
        return prune(document, self.root)[0]

    def unknown_fields(self, document: JsonObject) -> list[str]:
        """Paths `prune` would drop, for requests with `fieldValidation` Warn or Strict."""
        return prune(document, self.root)[1]

    def default(self, document: JsonObject) -> JsonObject:
        """The object with defaults set, and nulls replaced by them or dropped."""
        return apply_defaults(document, self.root)

    def validate(self, document: JsonObject) -> list[FieldProblem]:
        """All problems of the object; empty when it may be stored."""
        return list(validate(document, self.root))

    def check_rules(self, document: JsonObject, before: JsonObject | None) -> list[BrokenRule]:
        """The rules that an object breaks, which must be valid otherwise; `before` is the stored
        one, None for a new one.
        """
        return list(check_rules(document, self.root, before))


def compile_schema(openapi_v3_schema: JsonObject) -> CompiledSchema:
    """The compiled schema, which must be structural (`structural_problems`)."""
    return _compile(orjson.dumps(openapi_v3_schema))


@lru_cache(maxsize=256)
def _compile(text: bytes) -> CompiledSchema:
    """Cached per process: many planes have the same kinds, and compiled schemas are immutable."""
    document: JsonObject = orjson.loads(text)
    return CompiledSchema(parse_schema(document), document)
