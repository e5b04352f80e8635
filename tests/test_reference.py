"""What the code knows is in the documents, and what they name the code knows.

Alerts, metrics, conditions, reasons, events and configuration keys, both ways. Pages that are made
from the code are compared with it by `generate --check`; here the pages that people write are, and
the code with itself: a word that nothing uses is no word of ours.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import yaml

from compute_api_types import catalogue, reasons
from compute_api_types.wire import JsonValue
from compute_operator_kit.config.loader import OVERRIDES
from compute_operator_kit.telemetry.metrics_catalogue import EVERY_METRIC, MetricType
from tools import reference_configuration, reference_metrics
from tools.doc_commands import pages
from tools.workspace import PACKAGES, ROOT, Package

OPERATIONS = (ROOT / "docs" / "spec" / "operations.md").read_text("utf-8")
METRICS = {metric.name for metric in EVERY_METRIC}
SERIES = METRICS | {
    f"{metric.name}_{row}"
    for metric in EVERY_METRIC
    if metric.type is MetricType.HISTOGRAM
    for row in ("bucket", "count", "sum")
}
MODULES = {Package(folder).import_name for folder in PACKAGES}
ALERTS = {rule["alert"] for rule in reference_metrics.load_rules()}
TYPES = {row.type for row in catalogue.CONDITIONS}
EVENTS = {reason for row in catalogue.EVENTS for reason in (*row.normal, *row.warning)}
# Words of others that pages write in the same way.
KINDS = {
    *("Workload", "WorkloadDeployment", "Instance", "Namespace", "Secret", "ConfigMap", "Service"),
    *("Cluster", "PropagationPolicy", "ResourceBinding", "Work", "Project", "ResourceClaim"),
    *("Network", "NetworkBinding", "SubnetClaim", "Location", "Lease", "Deployment", "Event"),
    *("AllowanceBucket", "ResourceGrant", "ResourceRegistration"),
    "ServiceAccount",
    "ClusterRoleBinding",
}


@cache
def sources() -> dict[Path, ast.Module]:
    return {
        path: ast.parse(path.read_text("utf-8"))
        for path in sorted(ROOT.glob("packages/*/src/**/*.py"))
        # Neither writes a word: one simulates planes, the other explains what all of them hold.
        if not {"sim-planes", "kubectl-compute"} & set(path.parts)
    }


def texts_in_code(besides: str) -> set[str]:
    """Every text that stands in the code outside one file."""
    return {
        node.value
        for path, tree in sources().items()
        if path.name != besides
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def reasons_in_code() -> set[str]:
    """Words that the code takes from `reasons`, where they are not listed only."""
    listed = {"reasons.py", "catalogue.py"}
    return {
        str(getattr(reasons, node.attr))
        for path, tree in sources().items()
        if path.name not in listed
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "reasons"
        and node.attr.isupper()
    }


def interpreter() -> str:
    """What Karmada runs of ours."""
    folder = ROOT / "deploy" / "hub" / "interpreter"
    return "\n".join(path.read_text("utf-8") for path in sorted(folder.glob("*.lua")))


def documents() -> list[Path]:
    return [*pages(ROOT), *ROOT.glob("deploy/**/*.md")]


# --- metrics --------------------------------------------------------------------------------------


def metrics_named_in(text: str) -> Iterator[str]:
    """Names as pages write them: with labels after them, or several in one pair of braces."""
    plain = re.sub(r'\{[a-z_]+(?:=|!=|=~|!~)"[^}]*\}', "", text)
    roots = "compute|controller_runtime|workqueue|leader_election|certwatcher|rest_client"
    pattern = rf"(?<![\w./-])((?:{roots})_[a-z0-9_]*)(\{{[a-z_,…]+\}})?([a-z_]*)(?![\w./-])"
    for head, braces, tail in re.findall(pattern, plain):
        if head.endswith("_") and braces:
            yield from (f"{head}{part}{tail}" for part in braces.strip("{}").split(","))
        elif not head.endswith("_"):
            yield head


@pytest.mark.parametrize("page", documents(), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_page_names_only_metrics_that_there_are(page: Path) -> None:
    text = re.sub(r"`[\w./-]+\.py`", "", page.read_text("utf-8"))
    assert set(metrics_named_in(text)) - SERIES - MODULES == set()


def test_names_are_found_as_pages_write_them() -> None:
    text = 'a `compute_plane_up{plane="hub"}` and `workqueue_{depth,adds_total}{name}`, `compute_x`'
    found = list(metrics_named_in(text))
    assert found == ["compute_plane_up", "workqueue_depth", "workqueue_adds_total", "compute_x"]


def test_every_metric_is_measured_somewhere_and_every_measured_one_is_known() -> None:
    in_code = {text for text in texts_in_code("metrics_catalogue.py") if _is_metric(text)}
    assert in_code - MODULES == METRICS


def _is_metric(text: str) -> bool:
    roots = ("compute_", "controller_runtime_", "workqueue_", "leader_election_", "certwatcher_")
    return text.startswith((*roots, "rest_client_")) and re.fullmatch(r"[a-z_]+", text) is not None


def test_every_metric_is_specified() -> None:
    section = OPERATIONS.split("\n## 6. Metrics\n")[1].split("\n## 7.")[0]
    assert METRICS - set(metrics_named_in(section)) == set()


# --- alerts ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", documents(), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_page_names_only_alerts_that_there_are(page: Path) -> None:
    text = page.read_text("utf-8")
    named = set(re.findall(r"\bCompute[A-Z][a-z]+[A-Z]\w+", text))
    assert named - ALERTS == set()


# --- conditions, reasons, events ------------------------------------------------------------------


def test_every_word_for_users_is_used_and_every_used_one_is_listed() -> None:
    used = reasons_in_code()
    # Those of others: a provider writes them, and we read them by rank and meaning.
    read_only = {
        reason for row in catalogue.CONDITIONS if row.writer == "provider" for reason in row.reasons
    }
    by_karmada = {word for word in reasons.MEANINGS if f'"{word}"' in interpreter()}
    for_users = {meaning.reason for meaning in reasons.MEANINGS.values() if not meaning.internal}
    quarantined = {one.event for one in reasons.QuarantineReason}
    elsewhere = read_only | by_karmada | quarantined | set(catalogue.PASSED_ON)
    assert for_users - used - elsewhere == set()
    assert used <= set(reasons.MEANINGS)


def test_every_internal_word_is_used() -> None:
    internal = {meaning.reason for meaning in reasons.MEANINGS.values() if meaning.internal}
    assert internal - reasons_in_code() - texts_in_code("reasons.py") == set()


def test_words_of_the_runtime_are_those_that_its_errors_carry() -> None:
    """Errors that stop a pass begin with their word; `answers.py` derives some of theirs."""
    carried = {
        str(call.args[0].value)
        for tree in sources().values()
        for call in ast.walk(tree)
        if isinstance(call, ast.Call)
        and (_name_of(call.func).endswith("Error") or _is_of_parent(call))
        and call.args
        and isinstance(call.args[0], ast.Constant)
        and re.fullmatch(r"[A-Z][a-z]+[A-Z][A-Za-z]+", str(call.args[0].value))
    }
    page = (ROOT / "docs" / "logging.md").read_text("utf-8")
    told = set(
        re.findall(r"^\| `(\w+)` \|", page.split("## Words of the runtime")[1], re.MULTILINE)
    )
    assert carried - set(reasons.MEANINGS) <= told
    assert told <= texts_in_code("reasons.py")


def _is_of_parent(call: ast.Call) -> bool:
    """`super().__init__("Word", …)`."""
    return isinstance(call.func, ast.Attribute) and call.func.attr == "__init__"


def test_events_that_are_emitted_are_listed() -> None:
    emitted = {
        str(getattr(reasons, part.attr))
        for tree in sources().values()
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and _name_of(call.func) == "RecordEvent"
        for part in (*call.args, *(keyword.value for keyword in call.keywords))
        if isinstance(part, ast.Attribute) and _name_of(part.value) == "reasons"
    }
    assert emitted
    assert emitted - EVENTS == set()


def _name_of(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else getattr(node, "attr", "")


@pytest.mark.parametrize(
    "page",
    # Pages about changing the code name its classes.
    sorted({*ROOT.glob("docs/howto/**/*.md")} - {*ROOT.glob("docs/howto/develop/*.md")}),
    ids=lambda page: page.stem,
)
def test_a_how_to_names_only_words_that_there_are(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    named = set(re.findall(r"`([A-Z][a-z]+(?:[A-Z][a-z]+)+)`", text))
    known = set(reasons.MEANINGS) | TYPES | KINDS | ALERTS
    assert named - known == set()


# --- configuration --------------------------------------------------------------------------------


def keys_of(found: JsonValue, above: str = "") -> Iterator[str]:
    if isinstance(found, dict) and found:
        for name, value in found.items():
            yield from keys_of(value, f"{above}.{name}" if above else str(name))
    else:
        yield above


def test_the_specified_file_has_every_key_and_no_other() -> None:
    provider = (ROOT / "docs" / "spec" / "pod-provider.md").read_text("utf-8")
    shown = re.findall(
        r"^```yaml\n(apiVersion: apiserver.*?)^```", OPERATIONS + provider, re.MULTILINE | re.DOTALL
    )
    assert len(shown) == 2
    specified = {key for one in shown for key in keys_of(yaml.safe_load(one))}
    specified -= {"apiVersion", "kind"}
    # Shown for one operator and noted for the other in a comment.
    assert specified == set(reference_configuration.TELLS)


def test_flags_and_variables_are_those_of_the_specification() -> None:
    table = OPERATIONS.split("### 1.2 Flags and environment")[1].split("### 1.3")[0]
    assert set(re.findall(r"`(--[a-z-]+)`", table)) == {
        *(one.flag for one in OVERRIDES if one.flag),
        "--server-config",
        "--version",
    }
    variables = set(re.findall(r"`([A-Z_]{4,})`", table))
    known = {one.variable for one in OVERRIDES}
    assert variables == known | {"SERVER_CONFIG", "POD_NAMESPACE", "POD_NAME"}


@pytest.mark.parametrize(
    ("folder", "names"),
    [
        ("management", "*config*.yaml"),
        ("cell", "*config*.yaml"),
        ("pod-provider/operator", "*config*.yaml"),
        ("single-cluster", "*.yaml"),
    ],
)
def test_shipped_files_have_known_keys_only(folder: str, names: str) -> None:
    documents: list[JsonValue] = [
        document
        for path in sorted((ROOT / "deploy" / folder).glob(names))
        for document in yaml.safe_load_all(path.read_text("utf-8"))
    ]
    found = [
        document
        for document in documents
        # Patches of kustomize are lists.
        if isinstance(document, dict)
        and str(document["apiVersion"]).startswith("apiserver.config.")
    ]
    assert found
    for document in found:
        keys = set(keys_of(document)) - {"apiVersion", "kind"}
        assert keys <= set(reference_configuration.TELLS)
