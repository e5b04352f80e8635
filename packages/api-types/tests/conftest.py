"""What the tests of api-types share: the generated schemas, offline."""

from collections.abc import Callable

import pytest
from hypothesis import settings
from jsonschema import Draft202012Validator

from compute_api_types.crd import derive_crds
from compute_api_types.wire import JsonObject, JsonValue

# A busy machine makes an example slow, not wrong.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")


def schema_of(kind: JsonValue) -> JsonObject:
    for document in derive_crds():
        match document:
            case {
                "spec": {
                    "names": {"kind": found},
                    "versions": [{"schema": {"openAPIV3Schema": dict(schema)}}],
                }
            } if found == kind:
                return schema
            case _:
                continue
    raise AssertionError(f"no CRD of kind {kind}")


@pytest.fixture(scope="session")
def schemas() -> dict[str, JsonObject]:
    """The schema of each kind, as an API server would hold it."""
    return {kind: schema_of(kind) for kind in ("Workload", "WorkloadDeployment", "Instance")}


@pytest.fixture(scope="session")
def schema_errors(schemas: dict[str, JsonObject]) -> Callable[[JsonObject], list[str]]:
    """What the schema of its kind finds wrong with an object."""
    validators = {kind: Draft202012Validator(schema) for kind, schema in schemas.items()}

    def errors(document: JsonObject) -> list[str]:
        validator = validators[str(document["kind"])]
        # The stubs leave the second, unused argument without a type.
        found = validator.iter_errors(document)  # pyright: ignore[reportUnknownMemberType]
        return [str(error.message) for error in found]

    return errors
