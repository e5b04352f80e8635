"""A benchmark's rows become a table for people and a memory for machines."""

from tools.bench import Row, names, table


def test_a_row_that_only_informs_holds() -> None:
    assert Row("claims per second", 120.0, "1/s").holds


def test_the_table_names_what_does_not_hold() -> None:
    printed = table([Row("parse", 81.5, "µs", "orjson.loads", 7.25, 6.0, holds=False)])
    assert printed.splitlines()[1].split() == [
        "parse",
        "81.5",
        "µs",
        "orjson.loads",
        "7.25",
        "6",
        "NO",
    ]


def test_every_benchmark_file_can_be_asked_for() -> None:
    assert "__init__" not in names()
