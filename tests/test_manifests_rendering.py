from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from compute_api_types.wire import JsonObject
from e2e.kustomization.documents import elements, inner, parse_values, text_at
from e2e.kustomization.errors import KustomizationError
from e2e.kustomization.generators import hash_of
from e2e.kustomization.model import Image
from e2e.kustomization.transformers import derive_image
from e2e.manifests import find_overlays, render

SAMPLE: Final = Path(__file__).parent / "kustomize_sample"


@pytest.fixture(scope="module")
def overlay() -> dict[str, JsonObject]:
    """The sample's overlay, by kind."""
    return {text_at(found, "kind"): found for found in render(SAMPLE / "overlay")}


def _container(found: JsonObject, name: str) -> JsonObject:
    containers = elements(found, "spec", "template", "spec", "containers")
    return next(one for one in containers if one["name"] == name)


def test_what_others_need_comes_first() -> None:
    kinds = [text_at(found, "kind") for found in render(SAMPLE / "overlay")]
    assert kinds[:2] == ["Namespace", "ServiceAccount"]
    assert kinds[-1] == "ValidatingWebhookConfiguration"


def test_a_namespace_reaches_objects_and_those_who_name_them(
    overlay: dict[str, JsonObject],
) -> None:
    assert text_at(overlay["Namespace"], "metadata", "name") == "sample-system"
    assert text_at(overlay["Deployment"], "metadata", "namespace") == "sample-system"
    assert "namespace" not in inner(overlay["ClusterRoleBinding"], "metadata")
    subjects = elements(overlay["RoleBinding"], "subjects")
    assert [one.get("namespace") for one in subjects] == [
        "sample-system",  # ours: the ServiceAccount is in this rendering
        "sample-system",  # `default` is meant to be that of the namespace
        "elsewhere",
    ]
    (webhook,) = elements(overlay["ValidatingWebhookConfiguration"], "webhooks")
    assert inner(webhook, "clientConfig", "service")["namespace"] == "sample-system"


def test_a_generated_config_map_is_named_by_its_content(overlay: dict[str, JsonObject]) -> None:
    made = next(
        found
        for found in render(SAMPLE / "overlay")
        if text_at(found, "metadata", "name").startswith("operator-config-")
    )
    name = text_at(made, "metadata", "name")
    assert inner(made, "data")["LEVEL"] == "debug"  # the component's word, merged over the base's
    assert inner(made, "data")["QUOTED"] == "two words"
    variable = elements(_container(overlay["Deployment"], "operator"), "env")[-1]
    assert inner(variable, "valueFrom", "configMapKeyRef")["name"] == name
    assert elements(overlay["Role"], "rules")[0]["resourceNames"] == [name]


def test_another_content_is_another_name() -> None:
    assert hash_of({"data": {"a": "1"}}) != hash_of({"data": {"a": "2"}})


def test_a_strategic_merge_knows_the_elements_of_lists(overlay: dict[str, JsonObject]) -> None:
    pod = inner(overlay["Deployment"], "spec", "template", "spec")
    # What the patch names comes first, `logger` was deleted.
    assert [one["name"] for one in elements(pod, "containers")] == ["certificates", "operator"]
    assert [
        one["mountPath"]
        for one in elements(_container(overlay["Deployment"], "operator"), "volumeMounts")
    ] == [
        "/certificates",
        "/etc/operator",
        "/scratch",
    ]
    scratch = next(one for one in elements(pod, "volumes") if one["name"] == "scratch")
    assert scratch["emptyDir"] == {"sizeLimit": "16Mi"}  # null removes


def test_lists_of_a_kind_nobody_knows_are_replaced(overlay: dict[str, JsonObject]) -> None:
    (only,) = elements(overlay["Widget"], "spec", "containers")
    assert only == {"name": "only", "image": "registry.example/released/operator:v2"}


def test_a_patch_can_delete_a_resource(overlay: dict[str, JsonObject]) -> None:
    assert "PodDisruptionBudget" not in overlay


def test_a_json_patch_changes_what_its_target_names(overlay: dict[str, JsonObject]) -> None:
    assert inner(overlay["Deployment"], "spec")["replicas"] == 2
    assert _container(overlay["Deployment"], "operator")["args"] == [
        "--config=/etc/operator/config.yaml",
        "--leader-elect",
    ]


@pytest.mark.parametrize(
    ("current", "wanted"),
    [
        ("host:5000/a", "host:5000/a:v2"),
        ("host:5000/a:v1", "host:5000/a:v2"),
        ("host:5000/a@sha256:00", "host:5000/a:v2"),
        ("host:5000/a:v1@sha256:00", "host:5000/a:v2"),
        ("host:5000/ab:v1", "host:5000/ab:v1"),
    ],
)
def test_an_image_is_changed_by_its_whole_name(current: str, wanted: str) -> None:
    assert derive_image(current, Image(name="host:5000/a", new_tag="v2")) == wanted


def test_scalars_are_read_as_yaml_has_them_today() -> None:
    assert parse_values("[on, 1:30, 2026-01-01, 0x10, 1e3, ~, true, '']") == [
        ["on", "1:30", "2026-01-01", 16, 1000.0, None, True, ""]
    ]


def _write(folder: Path, kustomization: str, **files: str) -> Path:
    (folder / "kustomization.yaml").write_text(kustomization, "utf-8")
    for name, text in files.items():
        (folder / f"{name}.yaml").write_text(text, "utf-8")
    return folder


ONE: Final = "resources: [one.yaml]\npatches: "
WIDGET: Final = "{apiVersion: sample.test/v1, kind: Widget, metadata: {name: one}, spec: {a: 1}}"


@pytest.mark.parametrize(
    ("kustomization", "told"),
    [
        ("namePrefix: x-", "namePrefix"),
        ("resources: [absent.yaml]", "absent.yaml"),
        ("resources: [one.yaml, one.yaml]", "comes twice"),
        (ONE + "[{patch: '[]'}]", "needs a target"),
        (
            ONE + "[{target: {kind: Widget}, patch: '[{op: remove, path: /spec/b}]'}]",
            "there is no 'b'",
        ),
        (
            ONE + "[{target: {kind: Widget}, patch: '[{op: test, path: /spec/a, value: 2}]'}]",
            "it is 1, not 2",
        ),
        (
            ONE + "[{patch: '{apiVersion: v1, kind: Secret, metadata: {name: s}}'}]",
            "no resource matches",
        ),
        ("resources: [nameless.yaml]", "without apiVersion, kind or name"),
        ("configMapGenerator: [{name: c, files: [absent.txt]}]", "absent.txt"),
        ("configMapGenerator: [{name: c, literals: [nothing]}]", "no key=value"),
        ("configMapGenerator: [{name: c, behavior: merge}]", "nothing to lay it over"),
    ],
)
def test_what_cannot_be_rendered_is_refused_with_its_name(
    tmp_path: Path, kustomization: str, told: str
) -> None:
    folder = _write(tmp_path, kustomization, one=WIDGET, nameless="{kind: Widget, apiVersion: v1}")
    with pytest.raises(KustomizationError, match=re.escape(told)):
        render(folder)


def test_every_overlay_we_ship_renders() -> None:
    overlays = find_overlays()
    assert overlays
    for folder in overlays:
        assert render(folder), folder


def test_rendering_twice_gives_the_same() -> None:
    assert render(SAMPLE / "overlay") == render(SAMPLE / "overlay")
