import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from compute_api_types import catalogue, reasons
from compute_api_types.conditions import NEVER_COMPETES, RANKS
from compute_api_types.reasons import MEANINGS, Meaning, QuarantineReason

SPEC = Path(__file__).parents[4] / "docs" / "spec"
API = (SPEC / "api.md").read_text("utf-8")


def constants(members: Mapping[str, object]) -> dict[str, str]:
    return {
        name: word
        for name, word in members.items()
        if name.isupper() and not name.startswith("_") and isinstance(word, str)
    }


def test_every_constant_has_a_meaning_and_every_meaning_a_constant() -> None:
    words = list(constants(vars(reasons)).values())
    assert sorted(words) == sorted(MEANINGS)


@pytest.mark.parametrize("name", constants(vars(reasons)))
def test_a_constant_is_named_after_its_word(name: str) -> None:
    word = constants(vars(reasons))[name]
    snake = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", word)
    assert name == snake.upper()


@pytest.mark.parametrize("meaning", MEANINGS.values(), ids=list(MEANINGS))
def test_a_reason_is_a_word_and_its_meaning_a_sentence(meaning: Meaning) -> None:
    assert re.fullmatch(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?", meaning.reason)
    assert len(meaning.reason) <= 128
    for sentence in (meaning.means, meaning.act):
        assert sentence.endswith(".")
        assert sentence[0].isupper()
        assert "|" not in sentence  # it goes into a table


def shown() -> set[str]:
    in_conditions = {reason for row in catalogue.CONDITIONS for reason in row.reasons}
    in_events = {reason for row in catalogue.EVENTS for reason in (*row.normal, *row.warning)}
    return in_conditions | in_events


def test_every_reason_is_shown_somewhere_or_internal() -> None:
    internal = {meaning.reason for meaning in MEANINGS.values() if meaning.internal}
    assert shown() | internal == set(MEANINGS)


def test_internal_reasons_are_shown_nowhere_and_have_no_rank() -> None:
    internal = {meaning.reason for meaning in MEANINGS.values() if meaning.internal}
    assert internal
    assert not internal & shown()
    assert not internal & set(RANKS)
    assert not internal & set(NEVER_COMPETES)


def words_of(section: str) -> set[str]:
    """CamelCase words in the reason column of the tables of a section."""
    body = API.split(section)[1].split("\n### ")[0].split("\n## ")[0]
    rows = [line.split("|") for line in body.splitlines() if line.startswith("|")]
    cells = [cell for row in rows for cell in row]
    return {word for cell in cells for word in re.findall(r"`([A-Z][A-Za-z]+)`", cell)}


@pytest.mark.parametrize("section", ["### 8.2 Instance", "### 8.3 WorkloadDeployment", "### 8.4 "])
def test_every_word_in_the_tables_of_the_specification_is_known(section: str) -> None:
    types = {"Programmed", "Available", "QuotaGranted", "Ready", "ReplicasReady", "NetworkBinding"}
    others = {"Network", "Quota", "Granted"}  # two gates, and the condition of a claim
    assert words_of(section) - types - others - set(MEANINGS) == set()


@pytest.mark.parametrize("row", catalogue.EVENTS, ids=lambda row: row.on)
def test_events_are_those_of_the_specification(row: catalogue.ShownEvents) -> None:
    operations = (SPEC / "operations.md").read_text("utf-8")
    table = operations.split("## 7. Events")[1].split("\n## ")[0]
    written = set(re.findall(r"`([A-Z][A-Za-z]+)`", table))
    quarantined = {reason for reason in row.warning if reason.startswith("Quarantined")}
    # The table gives these two families by description instead of by word.
    denials = {reason for reason in row.warning if reason in MEANINGS} - written
    assert set(row.normal) <= written
    assert quarantined == ({each.event for each in QuarantineReason} if quarantined else set())
    if row.on == "Instance on a cell":
        not_true = {
            reason
            for each in catalogue.INSTANCE_CONDITIONS
            if each.type == "QuotaGranted" and each.status != "True"
            for reason in each.reasons
        }
        assert denials == not_true - {"PendingEvaluation"} - written
    else:
        assert denials - quarantined == set()


@pytest.mark.parametrize(
    ("reason", "event"),
    [
        ("unidentifiable", "QuarantinedUnidentifiable"),
        ("missing_namespace_label", "QuarantinedMissingNamespaceLabel"),
        ("missing_deployment_name", "QuarantinedMissingDeploymentName"),
        ("identity_mismatch", "QuarantinedIdentityMismatch"),
        ("deployment_absent", "QuarantinedDeploymentAbsent"),
        ("cell_unknown", "QuarantinedCellUnknown"),
        ("cell_city_mismatch", "QuarantinedCellCityMismatch"),
        ("name_taken", "QuarantinedNameTaken"),
        ("oversized", "QuarantinedOversized"),
    ],
)
def test_a_quarantine_has_a_word_for_machines_and_one_for_the_event(
    reason: str, event: str
) -> None:
    assert QuarantineReason(reason).event == event
    assert event in MEANINGS


def test_there_are_eleven_reasons_for_quarantine() -> None:
    assert len(QuarantineReason) == 11
