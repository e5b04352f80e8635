"""Forms for issues and pull requests have the syntax of GitHub, which leaves out any other."""

from __future__ import annotations

from typing import Literal

import pytest
import yaml
from pydantic import BaseModel, ConfigDict, Field

from tools.workspace import PACKAGES, ROOT

FORMS = ROOT / ".github" / "ISSUE_TEMPLATE"
TEMPLATE = (ROOT / ".github" / "pull_request_template.md").read_text("utf-8")
HOUSE_STYLE = (ROOT / "docs" / "style" / "house-style.md").read_text("utf-8")


class Attributes(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    label: str = ""
    description: str = ""
    value: str = ""
    options: tuple[str, ...] = ()


class Validations(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    required: bool


class Element(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    type: Literal["markdown", "input", "textarea", "dropdown"]
    id: str = Field("", pattern=r"^[A-Za-z0-9_-]*$")
    attributes: Attributes
    validations: Validations | None = None


class Form(BaseModel):
    """An issue form, as far as GitHub's syntax is used."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(min_length=1)
    description: str = Field(min_length=1)
    labels: tuple[str, ...]
    body: tuple[Element, ...] = Field(min_length=1)


def read(name: str) -> Form:
    return Form.model_validate(yaml.safe_load((FORMS / name).read_text("utf-8")))


def test_there_is_a_form_per_kind_and_no_empty_one() -> None:
    assert {path.name for path in FORMS.iterdir()} == {"bug.yaml", "feature.yaml", "config.yml"}
    settings = yaml.safe_load((FORMS / "config.yml").read_text("utf-8"))
    assert settings == {"blank_issues_enabled": False}


@pytest.mark.parametrize("name", ["bug.yaml", "feature.yaml"])
def test_each_question_has_a_label_and_an_id_of_its_own(name: str) -> None:
    questions = [one for one in read(name).body if one.type != "markdown"]
    assert all(one.id and one.attributes.label for one in questions)
    for values in ([one.id for one in questions], [one.attributes.label for one in questions]):
        assert len(set(values)) == len(values)
    assert any(one.validations is not None and one.validations.required for one in questions)


def test_a_bug_names_one_of_our_packages_and_keeps_secrets_out() -> None:
    form = read("bug.yaml")
    (packages,) = [one for one in form.body if one.type == "dropdown"]
    assert packages.attributes.options == (*PACKAGES, "not known")
    assert "Remove credentials" in form.body[0].attributes.value


def test_a_pull_request_answers_the_questions_of_the_review() -> None:
    review = HOUSE_STYLE.partition("## 14. ")[2].partition("\n## ")[0]
    asked, answered = review.count("- [ ]"), TEMPLATE.count("- [ ]")
    assert asked > 0
    assert answered == asked + 1  # the tests
    assert "`./dev test`" in TEMPLATE
