"""A kustomization file as data; what it may say here, and nothing else.

A field of kustomize that is not listed is refused: rendering a kustomization in part would show
manifests that nobody ships.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel


class _Strict(BaseModel):
    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True
    )


class Selector(_Strict):
    """Which resources a patch is for; every field is a regular expression on the whole value."""

    group: str = ""
    version: str = ""
    kind: str = ""
    name: str = ""
    namespace: str = ""


class Patch(_Strict):
    """A strategic-merge or JSON patch, in the file itself or in one beside it."""

    path: str = ""
    patch: str = ""
    target: Selector | None = None


class Labels(_Strict):
    """Labels to add, by default to the metadata alone."""

    pairs: dict[str, str]
    include_selectors: bool = False
    include_templates: bool = False


class Image(_Strict):
    """A container image under another name, tag or digest."""

    name: str
    new_name: str = ""
    new_tag: str = ""
    digest: str = ""


class GeneratorOptions(_Strict):
    """What generated objects carry."""

    labels: dict[str, str] = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=dict)
    disable_name_suffix_hash: bool = False
    immutable: bool = False


class ConfigMapSource(_Strict):
    """A ConfigMap made of files and literals."""

    name: str
    namespace: str = ""
    behavior: Literal["create", "merge", "replace"] = "create"
    files: tuple[str, ...] = ()
    literals: tuple[str, ...] = ()
    options: GeneratorOptions = GeneratorOptions()


class Kustomization(_Strict):
    """One kustomization file."""

    api_version: str = ""
    kind: Literal["Kustomization", "Component"] = "Kustomization"
    resources: tuple[str, ...] = ()
    components: tuple[str, ...] = ()
    config_map_generator: tuple[ConfigMapSource, ...] = ()
    generator_options: GeneratorOptions = GeneratorOptions()
    patches: tuple[Patch, ...] = ()
    namespace: str = ""
    labels: tuple[Labels, ...] = ()
    common_annotations: dict[str, str] = Field(default_factory=dict)
    images: tuple[Image, ...] = ()
