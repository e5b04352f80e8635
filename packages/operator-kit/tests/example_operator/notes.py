"""The kind of the example operator, with its labels, annotation and finalizer."""

from __future__ import annotations

from typing import Final

from compute_operator_kit.client.interface import FieldOwner
from compute_operator_kit.core.json import JsonObject
from compute_operator_kit.core.keys import Kind, PlaneName

NOTE: Final = Kind("example.datumapis.com", "v1", "notes", "Note")
HUB: Final = PlaneName("hub")
FINALIZER: Final = "example.datumapis.com/mirror"
PLANE_LABEL: Final = "example.datumapis.com/plane"
NAME_LABEL: Final = "example.datumapis.com/name"
SOURCE_UID: Final = "example.datumapis.com/source-uid"
WRITER: Final = FieldOwner(controller="mirror", field_manager="example-mirror")

DEFINITION: Final[JsonObject] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "notes.example.datumapis.com"},
    "spec": {
        "group": NOTE.group,
        "scope": "Namespaced",
        "names": {"plural": "notes", "singular": "note", "kind": "Note", "listKind": "NoteList"},
        "versions": [
            {
                "name": NOTE.version,
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {
                                    "text": {"type": "string", "maxLength": 1000000},
                                    "tags": {"type": "array", "items": {"type": "string"}},
                                },
                            },
                            "status": {
                                "type": "object",
                                "properties": {
                                    "phase": {"type": "string"},
                                    "observedGeneration": {"type": "integer", "format": "int64"},
                                },
                            },
                        },
                    }
                },
            }
        ],
    },
}
