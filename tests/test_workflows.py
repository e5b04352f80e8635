"""The workflows call sessions that exist, cache what is dear, and release what can be verified.

They run nowhere but on their own machines, so that everything about them that can be wrong without
a run is looked at here.
"""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from pydantic import BaseModel, ConfigDict, Field

from e2e.backends.kind.commands import NEEDED
from tools.workspace import OPERATORS, PACKAGES, ROOT

WORKFLOWS = ROOT / ".github" / "workflows"
# What a runner needs before a session can start; nothing here judges a change.
PREPARING = re.compile(r"sudo apt-get (update|install --yes --no-install-recommends [a-z -]+)")
# `sudo env "PATH=$PATH"` keeps the runner's Python for sessions that need root, and `"HOME=$HOME"`
# the caches.
DOOR = re.compile(
    r'(?:sudo env "PATH=\$PATH" (?:"HOME=\$HOME" )?)?\./dev (?P<session>[a-z0-9]+)(?P<rest>.*)'
)
# By version, or by the hash of a commit; a branch moves without anybody's doing here. One action
# is published under a branch alone.
PINNED = re.compile(r"[\w./-]+@(v\d+(\.\d+)*|[0-9a-f]{40}|release/v1)")
CI_JOBS = {"check", "test", "cluster", "e2e", "images"}


class Step(BaseModel):
    """One step, as far as it is looked at."""

    model_config = ConfigDict(frozen=True)

    uses: str = ""
    run: str = ""
    settings: dict[str, object] = Field({}, alias="with")

    @property
    def action(self) -> str:
        return self.uses.partition("@")[0]


class Job(BaseModel):
    """One job of a workflow."""

    model_config = ConfigDict(frozen=True)

    steps: tuple[Step, ...]
    needs: tuple[str, ...] = ()
    permissions: dict[str, str] = {}
    timeout: int = Field(0, alias="timeout-minutes")
    strategy: dict[str, object] = {}

    @property
    def commands(self) -> list[str]:
        return [step.run.strip() for step in self.steps if step.run]

    def sessions(self) -> list[str]:
        return [found["session"] for command in self.commands if (found := DOOR.match(command))]

    def actions(self) -> set[str]:
        return {step.action for step in self.steps if step.uses}


class Workflow(BaseModel):
    """A file in `.github/workflows`."""

    model_config = ConfigDict(frozen=True)

    jobs: dict[str, Job]
    permissions: dict[str, str] = {}
    # YAML 1.1 reads the key `on` as a truth value.
    triggers: dict[str, object] = Field({}, alias="on")


def read(name: str) -> Workflow:
    document = yaml.safe_load((WORKFLOWS / name).read_text("utf-8"))
    return Workflow.model_validate({**document, "on": document[True]})


def workflows() -> dict[str, Workflow]:
    return {path.name: read(path.name) for path in sorted(WORKFLOWS.glob("*.yaml"))}


def jobs() -> Iterator[tuple[str, Job]]:
    for name, workflow in workflows().items():
        for title, job in workflow.jobs.items():
            yield f"{name}: {title}", job


def sessions() -> set[str]:
    """What the noxfile defines; it is read and not run, since nox is not among what it installs."""
    tree = ast.parse((ROOT / "noxfile.py").read_text("utf-8"))
    return {
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
        and any(ast.unparse(one).startswith("nox.session") for one in node.decorator_list)
    }


def test_every_session_that_a_workflow_calls_exists() -> None:
    called = {session for _, job in jobs() for session in job.sessions()}
    assert called >= CI_JOBS
    assert called <= sessions()


def flags_of(job: Job) -> Iterator[tuple[str, str]]:
    """Which flags a job gives to which session."""
    for command in job.commands:
        if found := DOOR.match(command):
            words = shlex.split(found["rest"])
            yield from ((found["session"], word) for word in words if word.startswith("--"))


def known_flags() -> set[str]:
    """Flags that the noxfile, the suites' conftests and the tools read: they are told nowhere else
    what they mean.
    """
    sources = [
        ROOT / "noxfile.py",
        ROOT / "conftest.py",
        *(ROOT / "e2e").rglob("conftest.py"),
        *(ROOT / "tools").rglob("*.py"),
    ]
    texts = [path.read_text("utf-8") for path in sources]
    return {flag for text in texts for flag in re.findall(r'"(--[a-z][a-z-]*)"', text)}


def test_every_flag_that_a_workflow_gives_a_session_is_known() -> None:
    given = {flag for _, job in jobs() for _, flag in flags_of(job)}
    assert given >= {"--all", "--in-cluster", "--kind", "--base-image", "--from-tag"}
    assert sorted(given - known_flags()) == []


def test_ci_has_a_job_per_suite_and_each_calls_nox_and_nothing_else() -> None:
    ci = read("ci.yaml")
    assert set(ci.jobs) == CI_JOBS
    for name, job in ci.jobs.items():
        assert name in job.sessions()
        others = [
            command
            for command in job.commands
            if not DOOR.fullmatch(command) and not PREPARING.fullmatch(command)
        ]
        assert others == [], name


def test_nightly_runs_take_everything() -> None:
    commands = [command for job in read("e2e.yaml").jobs.values() for command in job.commands]
    assert any("./dev e2e --all" in command for command in commands)
    assert any("./dev e2e --in-cluster --all" in command for command in commands)
    assert any("./dev e2e --kind" in command for command in commands)


def test_what_kind_is_driven_with_is_pinned_where_it_is_installed() -> None:
    """`prepare` names the same commands to whoever has not got it."""
    commands = read("e2e.yaml").jobs["kind"].commands
    installed = [command for command in commands if command.startswith("go install ")]
    assert installed == [NEEDED["kind"], NEEDED["karmadactl"]]


def test_whoever_looks_into_nodes_is_root_and_finds_the_caches() -> None:
    for name in ("in-cluster", "kind"):
        (called,) = [one for one in read("e2e.yaml").jobs[name].commands if "./dev e2e" in one]
        assert called.startswith('sudo env "PATH=$PATH" "HOME=$HOME" ./dev e2e --'), name


def cached(job: Job) -> str:
    paths = [step.settings.get("path", "") for step in job.steps if step.action == "actions/cache"]
    return "\n".join(str(path) for path in paths)


def test_uv_go_and_the_planes_are_cached_where_they_are_used() -> None:
    everywhere = {**read("ci.yaml").jobs, **read("e2e.yaml").jobs}
    for name, job in everywhere.items():
        assert "~/.cache/uv" in cached(job), name
        if {"cluster", "e2e"} & set(job.sessions()):
            for path in ("~/.cache/go-build", "~/go/pkg/mod", "~/.cache/datum-compute/planes"):
                assert path in cached(job), name


def test_go_is_the_newest_that_a_module_of_the_planes_asks_for() -> None:
    def version(path: Path) -> tuple[int, ...]:
        (found,) = re.findall(r"^go ([0-9.]+)$", path.read_text("utf-8"), re.MULTILINE)
        return tuple(int(part) for part in found.split("."))

    newest = max((ROOT / "e2e" / "planes").glob("*/go.mod"), key=version)
    named = {
        str(step.settings["go-version-file"])
        for _, job in jobs()
        for step in job.steps
        if step.action == "actions/setup-go"
    }
    assert {version(ROOT / name) for name in named} == {version(newest)}


def test_no_action_moves_by_itself_and_no_job_hangs() -> None:
    for name, job in jobs():
        for step in job.steps:
            assert not step.uses or PINNED.fullmatch(step.uses), f"{name}: {step.uses}"
        assert job.timeout > 0, name


def test_workflows_may_only_read_unless_a_job_says_why() -> None:
    for name, workflow in workflows().items():
        assert workflow.permissions == {"contents": "read"}, name
    writers = {name for name, job in jobs() if "write" in job.permissions.values()}
    assert writers == {"release.yaml: wheel", "release.yaml: image", "release.yaml: index"}


def test_no_command_takes_words_of_strangers() -> None:
    """An expression is put into a script before a shell reads it; a variable is not."""
    for name, job in jobs():
        assert [command for command in job.commands if "${{" in command] == [], name


# --- the release ----------------------------------------------------------------------------------


@pytest.mark.fault("S7")
def test_a_release_begins_with_a_tag_and_waits_for_tests_and_audit() -> None:
    release = read("release.yaml")
    assert release.triggers == {"push": {"tags": ["*/v*"]}}
    for name in ("wheel", "image"):
        assert set(release.jobs[name].needs) == {"test", "audit"}
    assert release.jobs["index"].needs == ("image",)


@pytest.mark.fault("S7")
def test_every_tag_is_a_library_or_an_operator_and_published_once() -> None:
    document = yaml.safe_load((WORKFLOWS / "release.yaml").read_text("utf-8"))
    for name, is_operator in (("wheel", False), ("image", True)):
        condition = str(document["jobs"][name]["if"])
        for folder in PACKAGES:
            is_named = f"startsWith(github.ref_name, '{folder}/')" in condition
            assert is_named == (folder in OPERATORS), f"{name}: {folder}"
        assert ("!startsWith" in condition) is not is_operator


@pytest.mark.fault("S7")
def test_a_wheel_is_built_twice_and_goes_out_with_sbom_and_provenance() -> None:
    job = read("release.yaml").jobs["wheel"]
    assert './dev release --from-tag "$TAG"' in job.commands
    assert {"actions/attest-build-provenance", "actions/attest-sbom"} <= job.actions()
    assert job.permissions["id-token"] == job.permissions["attestations"] == "write"
    order = [step.action for step in job.steps]
    assert order.index("actions/attest-build-provenance") < order.index(
        "pypa/gh-action-pypi-publish"
    )


@pytest.mark.fault("S7")
def test_an_image_is_built_for_both_architectures_and_its_index_is_attested() -> None:
    release = read("release.yaml")
    image, index = release.jobs["image"], release.jobs["index"]
    architectures = re.findall(r"'architecture': '(\w+)'", str(image.strategy))
    assert architectures == ["amd64", "arm64"]
    assert "images" in image.sessions()
    joined = next(command for command in index.commands if "manifest create" in command)
    for architecture in architectures:
        assert f"-{architecture}" in joined
    assert {"actions/attest-build-provenance", "actions/attest-sbom"} <= index.actions()
    for step in index.steps:
        if step.action.startswith("actions/attest"):
            assert step.settings["push-to-registry"] is True
            assert step.settings["subject-digest"] == "${{ env.DIGEST }}"


@pytest.mark.fault("S8")
def test_a_release_asks_what_is_known_against_the_locks() -> None:
    assert read("release.yaml").jobs["audit"].commands == ["./dev release --audit"]


def test_commands_of_shells_can_be_read() -> None:
    for name, job in jobs():
        for command in job.commands:
            assert shlex.split(command), name
