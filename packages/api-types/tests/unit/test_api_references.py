"""Which ConfigMaps and Secrets a template names (referenced-data.md 1)."""

from __future__ import annotations

import pytest

from compute_api_types.referenced_data.references import Reference, references


def a_template(*containers: object, **spec: object) -> dict[str, object]:
    pull_secrets = spec.pop("imagePullSecrets", None)
    sandbox = {"containers": list(containers), "imagePullSecrets": pull_secrets}
    return {"spec": {"runtime": {"sandbox": sandbox}, **spec}}


def a_key(kind: str, name: str, **more: object) -> dict[str, object]:
    return {"name": "V", "valueFrom": {kind: {"name": name, "key": "k", **more}}}


def tokens(template: object) -> list[str]:
    return [one.token + ("?" if one.is_optional else "") for one in references(template)]


@pytest.mark.spec("RD-01")
def test_every_field_that_names_an_object_is_found() -> None:
    first = {
        "env": [
            {"name": "PLAIN", "value": "Secret/none"},
            a_key("configMapKeyRef", "of-variable"),
            a_key("secretKeyRef", "of-variable"),
        ],
        "envFrom": [{"configMapRef": {"name": "of-all"}}],
    }
    second = {"envFrom": [{"prefix": "P_", "secretRef": {"name": "of-all", "optional": True}}]}
    volumes: list[object] = [
        {"name": "a", "configMap": {"name": "of-volume"}},
        {"name": "b", "secret": {"secretName": "of-volume", "optional": True}},
        {"name": "c", "disk": {}},
    ]
    template = a_template(first, second, imagePullSecrets=[{"name": "pull"}], volumes=volumes)
    assert tokens(template) == [
        "ConfigMap/of-all",
        "ConfigMap/of-variable",
        "ConfigMap/of-volume",
        "Secret/of-all?",
        "Secret/of-variable",
        "Secret/of-volume?",
        "Secret/pull",
    ]


@pytest.mark.spec("RD-01")
def test_an_object_is_found_once_and_optional_only_if_every_reference_is() -> None:
    env = [
        a_key("secretKeyRef", "mixed", optional=True),
        a_key("secretKeyRef", "both", optional=True),
        a_key("configMapKeyRef", "mixed", optional=True),
    ]
    template = a_template(
        {"env": env, "envFrom": [{"secretRef": {"name": "both", "optional": True}}]},
        imagePullSecrets=[{"name": "mixed", "optional": True}],
    )
    assert references(template) == (
        Reference("ConfigMap", "mixed", is_optional=True),
        Reference("Secret", "both", is_optional=True),
        Reference("Secret", "mixed", is_optional=False),
    )


@pytest.mark.spec("RD-01")
def test_names_are_ordered_by_code_point() -> None:
    pulled = [{"name": name} for name in ("b", "a.b", "a-b", "a", "B")]
    assert tokens(a_template(imagePullSecrets=pulled)) == [
        "Secret/B",
        "Secret/a",
        "Secret/a-b",
        "Secret/a.b",
        "Secret/b",
    ]


@pytest.mark.spec("RD-01")
@pytest.mark.parametrize(
    "template",
    [
        None,
        [],
        "Secret/a",
        {"spec": {"volumes": "a", "runtime": {"sandbox": {"containers": {"env": 1}}}}},
        a_template({"envFrom": [{"configMapRef": {"name": "a"}, "secretRef": {"name": "a"}}]}),
        a_template(
            {"env": [a_key("secretKeyRef", "")], "envFrom": [{"secretRef": {"name": ""}}, None]}
        ),
        a_template(volumes=[{"secret": {"name": "a"}}, {"configMap": {"secretName": "a"}}, 1]),
        a_template(imagePullSecrets=[{}, {"name": 1}, "a"]),
    ],
)
def test_what_names_no_object_counts_as_nothing(template: object) -> None:
    assert references(template) == ()
