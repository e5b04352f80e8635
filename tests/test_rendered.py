"""`deploy/rendered` is what kubectl makes of today's inputs, and is read as kubectl reads it."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from compute_api_types.wire import JsonObject
from compute_kubeconfig.strict_yaml import DocumentError
from e2e.harness.deploy.kustomization_inputs import UnknownFieldError, files_of
from e2e.harness.deploy.manifests import DEPLOY, load_overlay, rendered_file
from e2e.harness.deploy.overlay_targets import OVERLAYS
from e2e.harness.errors import PlanesError
from e2e.harness.stack.kubectl import NO_KUBECTL, find_kubectl, kustomize
from e2e.world.components import parse_manifests
from e2e.world.objects import object_at
from tools import rendered

needs_kubectl = pytest.mark.skipif(find_kubectl() is None, reason=NO_KUBECTL)
INPUTS = sorted(
    {
        path.resolve().relative_to(DEPLOY.resolve()).as_posix()
        for overlay in OVERLAYS
        for path in files_of(DEPLOY / overlay)
    }
)
MARK = "example.net/read"


@pytest.fixture
def deploy(tmp_path: Path) -> Path:
    """A copy of `deploy/` that a test may change."""
    return Path(shutil.copytree(DEPLOY, tmp_path / "deploy"))


def named(path: str) -> list[str]:
    return [
        f"rendered: deploy/{path} changed since deploy/rendered was rendered; {rendered.REMEDY}"
    ]


def test_digests_are_those_of_the_inputs_and_of_the_rendered_files(deploy: Path) -> None:
    assert rendered.find_stale_digests() == []
    assert rendered.find_stale_digests(deploy) == []


@pytest.mark.parametrize("path", INPUTS)
def test_input_that_changed_without_rendering_is_named_with_the_remedy(
    deploy: Path, path: str
) -> None:
    with (deploy / path).open("a", encoding="utf-8") as file:
        file.write("# changed\n")
    assert rendered.find_stale_digests(deploy) == named(path)
    assert rendered.REMEDY == "run `./dev render`"


def test_input_that_is_added_or_missing_is_named(deploy: Path) -> None:
    (deploy / "cell/config.yaml").unlink()
    assert rendered.find_stale_digests(deploy) == named("cell/config.yaml")
    kustomization = deploy / "cell/kustomization.yaml"
    text = kustomization.read_text("utf-8")
    kustomization.write_text(text.replace("- config.yaml", "- config.yaml=other.yaml"), "utf-8")
    (deploy / "cell/other.yaml").write_text("a: 1\n", "utf-8")
    assert rendered.find_stale_digests(deploy) == [
        line
        for path in ("cell/config.yaml", "cell/kustomization.yaml", "cell/other.yaml")
        for line in named(path)
    ]


def test_rendered_file_that_is_edited_missing_or_of_no_overlay_is_named(deploy: Path) -> None:
    with (deploy / "rendered/cell.yaml").open("a", encoding="utf-8") as file:
        file.write("# by hand\n")
    (deploy / "rendered/hub.yaml").unlink()
    (deploy / "rendered/other.yaml").write_text("a: 1\n", "utf-8")
    assert rendered.find_stale_digests(deploy) == [
        line for name in ("cell", "hub", "other") for line in named(f"rendered/{name}.yaml")
    ]


def test_without_the_digests_every_file_is_stale(deploy: Path) -> None:
    (deploy / rendered.DIGESTS).unlink()
    assert len(rendered.find_stale_digests(deploy)) == len(INPUTS) + len(OVERLAYS)


@pytest.mark.parametrize(
    "text",
    [
        "namePrefix: x-\n",
        "configMapGenerator:\n- {name: a, envs: [a.env]}\n",
        "patches:\n- {path: a.yaml, options: {allowNameChange: true}}\n",
    ],
)
def test_field_that_could_name_files_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "kustomization.yaml").write_text(text, "utf-8")
    with pytest.raises(UnknownFieldError, match=r"unknown field '(namePrefix|envs|options)'"):
        list(files_of(tmp_path))


@needs_kubectl
def test_committed_files_are_what_kubectl_renders() -> None:
    assert rendered.find_differences(rendered.wanted_files()) == []


@needs_kubectl
def test_rendering_again_repairs_what_differs(deploy: Path) -> None:
    config = deploy / "single-cluster/cell.yaml"
    config.write_text(config.read_text("utf-8") + "# changed\n", "utf-8")
    (deploy / "rendered/other.yaml").write_text("a: 1\n", "utf-8")
    wanted = rendered.wanted_files(deploy)
    differing = ("digests", "other.yaml", "single-cluster.yaml")
    assert rendered.find_differences(wanted, deploy) == [
        f"rendered: deploy/rendered/{name} is not what kubectl renders; {rendered.REMEDY}"
        for name in differing
    ]
    rendered.write(wanted, deploy)
    assert rendered.find_differences(wanted, deploy) == []
    assert rendered.find_stale_digests(deploy) == []
    assert "# changed" in (deploy / "rendered/single-cluster.yaml").read_text("utf-8")


@needs_kubectl
def test_what_kubectl_cannot_render_is_an_error_with_its_words(tmp_path: Path) -> None:
    (tmp_path / "kustomization.yaml").write_text("resources: [absent.yaml]\n", "utf-8")
    with pytest.raises(PlanesError, match=r"absent\.yaml"):
        kustomize(tmp_path)


def read_by_kubectl(overlay: str) -> Iterator[JsonObject]:
    """Objects as JSON; `annotate --local` parses a file and asks no server."""
    kubectl = find_kubectl()
    assert kubectl is not None
    words = ("annotate", "--local", "-o", "json", f"{MARK}=yes", "-f", str(rendered_file(overlay)))
    done = subprocess.run([str(kubectl), *words], capture_output=True, text=True, check=True)
    decoder, text = json.JSONDecoder(), done.stdout.strip()
    while text:
        document, end = decoder.raw_decode(text)
        yield document
        text = text[end:].lstrip()


def marked(document: JsonObject) -> JsonObject:
    metadata = object_at(document, "metadata")
    annotations = {**object_at(metadata, "annotations"), MARK: "yes"}
    return {**document, "metadata": {**metadata, "annotations": annotations}}


@needs_kubectl
@pytest.mark.parametrize("overlay", OVERLAYS)
def test_python_reads_a_rendered_file_as_kubectl_does(overlay: str) -> None:
    assert [marked(one) for one in load_overlay(overlay)] == list(read_by_kubectl(overlay))


def test_documents_are_read_strictly() -> None:
    assert parse_manifests("a: 1\n---\nb: |\n  ---\n  on\nc: on\n") == [
        {"a": 1},
        {"b": "---\non\n", "c": "on"},
    ]
    for text in ("a: 1\na: 2\n", "a: &x 1\nb: *x\n", "a: !!binary AA==\n", "a: 1\n---\n"):
        with pytest.raises(DocumentError):
            parse_manifests(text)
