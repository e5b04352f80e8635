"""ConfigMaps made of files and literals, and the hash that names their content. Pure but for files.

The hash is kustomize's, letter by letter: whoever applies our rendering and kustomize's must find
one ConfigMap, not two.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Final

from compute_api_types.wire import JsonObject, JsonValue
from e2e.kustomization.documents import ensure_inner, inner
from e2e.kustomization.errors import KustomizationError
from e2e.kustomization.model import ConfigMapSource, GeneratorOptions
from e2e.kustomization.resources import Resource

HASH_LENGTH: Final = 10
# Digits and letters that could form a word are replaced.
_NO_WORDS: Final = str.maketrans("013ae", "ghkmt")


def generate_config_map(
    source: ConfigMapSource, defaults: GeneratorOptions, folder: Path
) -> Resource:
    """The ConfigMap a generator describes; the kustomization's options are its defaults."""
    data: dict[str, JsonValue] = {}
    for key, value in (*_literals(source), *_files(source, folder)):
        if key in data:
            raise KustomizationError(f"generating ConfigMap {source.name!r}: {key!r} comes twice")
        data[key] = value
    metadata: JsonObject = {"name": source.name}
    if source.namespace:
        metadata["namespace"] = source.namespace
    for name in ("labels", "annotations"):
        pairs: JsonObject = {**getattr(defaults, name), **getattr(source.options, name)}
        if pairs:
            metadata[name] = pairs
    document: JsonObject = {"apiVersion": "v1", "data": data, "kind": "ConfigMap"}
    document["metadata"] = metadata
    if defaults.immutable or source.options.immutable:
        document["immutable"] = True
    plain = defaults.disable_name_suffix_hash or source.options.disable_name_suffix_hash
    return Resource(document, needs_hash=not plain)


def _literals(source: ConfigMapSource) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    for literal in source.literals:
        key, separator, value = literal.partition("=")
        if not separator or not key:
            raise KustomizationError(f"generating {source.name!r}: {literal!r} is no key=value")
        is_quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
        pairs.append((key, value[1:-1] if is_quoted else value))
    return pairs


def _files(source: ConfigMapSource, folder: Path) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    for described in source.files:
        key, separator, path = described.partition("=")
        found = folder / (path if separator else key)
        try:
            pairs.append((key if separator else found.name, found.read_text("utf-8")))
        except (OSError, UnicodeDecodeError) as cause:
            message = f"generating ConfigMap {source.name!r} from {found}: {cause}"
            raise KustomizationError(message) from cause
    return pairs


def absorb(resources: list[Resource], made: Resource, source: ConfigMapSource) -> list[Resource]:
    """The resources with the generated one added, or laid over the one it names."""
    same = [one for one in resources if any(made.identity.is_same(n) for n in one.identities)]
    if source.behavior == "create":
        if same:
            raise KustomizationError(f"generating ConfigMap {source.name!r}: it exists already")
        return [*resources, made]
    if len(same) != 1:
        raise KustomizationError(f"generating ConfigMap {source.name!r}: nothing to lay it over")
    found = same[0]
    laid = _lay_over(found, made, keep_data=source.behavior == "merge")
    return [laid if one is found else one for one in resources]


def _lay_over(found: Resource, made: Resource, *, keep_data: bool) -> Resource:
    document: JsonObject = {**made.document, "metadata": dict(inner(found.document, "metadata"))}
    for name in ("labels", "annotations"):
        if pairs := inner(made.document, "metadata", name):
            metadata = ensure_inner(document, "metadata")
            metadata[name] = {**inner(metadata, name), **pairs}
    if keep_data:
        document["data"] = {**inner(found.document, "data"), **inner(made.document, "data")}
    return replace(found, document=document, needs_hash=found.needs_hash or made.needs_hash)


def add_hash(resource: Resource) -> Resource:
    """The resource under the name that its content gives it."""
    if not resource.needs_hash:
        return resource
    metadata = inner(resource.document, "metadata")
    named: JsonObject = {**metadata, "name": f"{metadata['name']}-{hash_of(resource.document)}"}
    return resource.become({**resource.document, "metadata": named})


def hash_of(config_map: JsonObject) -> str:
    """Ten letters that stand for the data of a ConfigMap."""
    hashed: JsonObject = {
        "data": config_map.get("data", ""),
        "kind": "ConfigMap",
        # kustomize means the name here and looks it up wrongly.
        "name": "",
    }
    text = json.dumps(hashed, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    # Go's encoder escapes what could end a script in a web page, and two line separators.
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return hashlib.sha256(text.encode()).hexdigest()[:HASH_LENGTH].translate(_NO_WORDS)
