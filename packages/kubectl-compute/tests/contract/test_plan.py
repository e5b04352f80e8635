"""`plan -f`: the rules of admission, deployments, rolls and quota, with nothing written."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path

import pytest
import yaml
from kubectl_worlds import CITIES, Planes, bucket, part, settled, workload
from served_planes import ServedPlanes, serve

from compute_api_types.validation import NETWORKING_OFF, Facts, derive_denial, review_workload
from compute_api_types.wire import JsonObject, JsonValue
from compute_kubectl.__main__ import run
from compute_kubectl.commands.terminal import Terminal
from compute_kubectl.render.layout import clean

EXAMPLES = sorted((Path(__file__).parents[4] / "examples/workloads").glob("*.yaml"))

# A file with a ConfigMap beside its Workload holds two documents; `plan` takes one.
ALONE = [path for path in EXAMPLES if "\n---" not in path.read_text("utf-8")]


def a_workload(name: str = "web") -> JsonObject:
    """The stored Workload with a template that admission accepts."""
    text = next(path for path in EXAMPLES if "kind: Workload" in path.read_text("utf-8"))
    example: JsonObject = next(
        one for one in yaml.safe_load_all(text.read_text("utf-8")) if one["kind"] == "Workload"
    )
    one = workload(CITIES, 2)
    part(one, "metadata")["name"] = name
    one["apiVersion"] = example["apiVersion"]
    part(one, "spec")["template"] = deepcopy(part(example, "spec")["template"])
    del one["status"]
    return one


def world() -> Planes:
    planes = settled()
    template = part(a_workload(), "spec")["template"]
    for each in (*planes.project["workloads"], *planes.project["workloaddeployments"]):
        part(each, "spec")["template"] = deepcopy(template)
    return planes


def plan(served: ServedPlanes, wanted: JsonObject, *words: str) -> tuple[int, str, str]:
    path = served.kubeconfig.parent / "workload.yaml"
    path.write_text(yaml.safe_dump(wanted), "utf-8")
    out, err = io.StringIO(), io.StringIO()
    environ = {"KUBECONFIG": str(served.kubeconfig)}
    given = ["plan", "-f", str(path), "-n", "shop", *words]
    code = run(given, environ, terminal=Terminal(out, err, 100))
    return code, out.getvalue(), err.getvalue()


def keep(_: JsonObject) -> None:
    """No edit."""


def scale(one: JsonObject) -> None:
    placements = part(one, "spec")["placements"]
    assert isinstance(placements, list)
    part(placements[0], "scaleSettings")["minReplicas"] = 3


def roll(one: JsonObject) -> None:
    template = part(one, "spec", "template")
    template["metadata"] = {"annotations": {"compute.datumapis.com/restartedAt": "now"}}


def move(one: JsonObject) -> None:
    placements = part(one, "spec")["placements"]
    assert isinstance(placements, list)
    part(placements[0])["cityCodes"] = ["DFW", "LHR"]


@pytest.mark.parametrize(
    ("edit", "code", "expected"),
    [
        (keep, 0, {"DFW": "keep", "ORD": "keep"}),
        (scale, 0, {"DFW": "scale", "ORD": "scale"}),
        (roll, 0, {"DFW": "roll", "ORD": "roll"}),
        (move, 1, {"DFW": "keep", "LHR": "create", "ORD": "delete"}),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_an_edit_gives_the_change_of_each_deployment(
    tmp_path: Path, edit: Callable[[JsonObject], None], code: int, expected: dict[str, str]
) -> None:
    wanted = a_workload()
    edit(wanted)
    with serve(world(), tmp_path) as served:
        ended, out, err = plan(served, wanted, "-o", "json")
        assert ended == code, out + err
        document = json.loads(out)
        assert {one["cityCode"]: one["change"] for one in document["deployments"]} == expected
        writes = [one for one in served.requests if one.method != "GET"]
        assert [(one.method, one.query) for one in writes] == [("PUT", {"dryRun": "All"})]
        text = plan(served, wanted)[1]
    if edit is roll:
        assert "4 Instances are replaced, one of a city at a time" in text
    if edit is move:
        assert "would wait for city LHR: no Cluster carries its code" in text
        assert "web-main-lhr" in text


def test_a_new_workload_is_created_in_each_city_and_its_quota_is_counted(tmp_path: Path) -> None:
    planes = world()
    planes.project["allowancebuckets"] = [bucket("instances", 6, 4), bucket("vcpus", 40000, 4000)]
    with serve(planes, tmp_path) as served:
        code, out, err = plan(served, a_workload("api"))
        assert (code, err) == (1, "")
        words = " ".join(out.split())
        assert "quota: instances: 4 needed, 2 left, new Instance 3 is the first to wait" in words
        assert "api-main-dfw" in out
        assert [one.method for one in served.requests if one.method != "GET"] == ["POST"]


@pytest.mark.spec("WY-11")
def test_what_admission_refuses_is_refused_with_the_same_message(tmp_path: Path) -> None:
    wanted = a_workload()
    part(wanted, "spec", "template", "spec", "runtime", "resources")["instanceType"] = "huge"
    placements = part(wanted, "spec")["placements"]
    assert isinstance(placements, list)
    part(placements[0], "scaleSettings")["minReplicas"] = -1
    stored = world().project["workloads"][0]
    errors = review_workload(wanted, stored, Facts("acme", NETWORKING_OFF, NETWORKING_OFF))
    assert isinstance(errors, tuple)
    assert len(errors) > 1
    message = derive_denial(wanted, errors).message
    with serve(world(), tmp_path) as served:
        for words in ((), ("--offline",)):
            served.requests.clear()
            code, out, _ = plan(served, wanted, "-o", "json", *words)
            assert code == 1
            assert json.loads(out)["verdict"] == f"would be refused: {message}"
            assert all(one.method == "GET" for one in served.requests)
        assert served.requests == []


def _set(path: tuple[str, ...], value: JsonValue) -> Callable[[JsonObject], None]:
    def change(one: JsonObject) -> None:
        part(one, *path[:-1])[path[-1]] = value

    return change


def _set_placement(key: str, value: JsonValue) -> Callable[[JsonObject], None]:
    def change(one: JsonObject) -> None:
        placements = part(one, "spec")["placements"]
        assert isinstance(placements, list)
        part(placements[0])[key] = value

    return change


RUNTIME = ("spec", "template", "spec", "runtime")
EDITS: dict[str, Callable[[JsonObject], None]] = {
    "nothing": keep,
    "scale": scale,
    "roll": roll,
    "cities": move,
    "no placements": _set(("spec", "placements"), []),
    "no template": _set(("spec", "template"), {}),
    "no cities": _set_placement("cityCodes", []),
    "a city twice": _set_placement("cityCodes", ["DFW", "DFW"]),
    "a bad city": _set_placement("cityCodes", ["?"]),
    "a bad placement": _set_placement("name", "A B"),
    "no scale": _set_placement("scaleSettings", {}),
    "a bad type": _set((*RUNTIME, "resources", "instanceType"), "huge"),
    "no containers": _set((*RUNTIME, "sandbox", "containers"), []),
    "a long name": _set(("metadata", "name"), "x" * 300),
    "labels": _set(("metadata", "labels"), {"team": "shop"}),
}


@pytest.mark.spec("WY-11")
@pytest.mark.parametrize("name", sorted(EDITS))
def test_a_plan_refuses_exactly_what_the_rules_of_admission_refuse(
    tmp_path: Path, name: str
) -> None:
    wanted = a_workload()
    EDITS[name](wanted)
    path = tmp_path / "workload.yaml"
    path.write_text(yaml.safe_dump(wanted), "utf-8")
    out = io.StringIO()
    given = ["plan", "-f", str(path), "--offline", "-o", "json"]
    code = run(given, {}, terminal=Terminal(out, out, 100))
    errors = review_workload(wanted, None, Facts("", NETWORKING_OFF, NETWORKING_OFF))
    assert isinstance(errors, tuple)
    assert code == (1 if errors else 0), out.getvalue()
    document = json.loads(out.getvalue())
    assert len(document["refusals"]) == len(errors)
    if errors:
        message = derive_denial(wanted, errors).message
        assert document["verdict"] == clean(f"would be refused: {message}")


@pytest.mark.spec("WY-11")
def test_what_only_the_server_refuses_is_refused(tmp_path: Path) -> None:
    with serve(world(), tmp_path) as served:
        served.denial = 'spec.placements[0].cityCodes[0]: Invalid value: "DFW": not served'
        code, out, _ = plan(served, a_workload())
    assert code == 1
    assert "would be refused: spec.placements[0].cityCodes[0]" in out


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("a: &a [1]\nb: *a\n", "alias"),
        ("kind: Pod\n", "kind must be Workload"),
        ("{]", "is not valid YAML"),
        ("kind: Workload\n", "metadata.name must be set"),
    ],
)
def test_a_file_that_is_no_workload_is_exit_code_2(tmp_path: Path, content: str, text: str) -> None:
    path = tmp_path / "file.yaml"
    path.write_text(content, "utf-8")
    err = io.StringIO()
    given = ["plan", "-f", str(path), "--offline"]
    assert run(given, {}, terminal=Terminal(io.StringIO(), err, 100)) == 2
    assert text in err.getvalue()
    assert run([*given[:2], str(tmp_path / "none")], {}, terminal=Terminal(err, err, 100)) == 2


@pytest.mark.parametrize("path", ALONE, ids=lambda one: one.stem)
def test_the_examples_pass_offline(path: Path) -> None:
    out = io.StringIO()
    given = ["plan", "-f", str(path), "--offline"]
    assert run(given, {}, terminal=Terminal(out, out, 100)) == 0
    assert "passes the rules that need no plane" in out.getvalue()
