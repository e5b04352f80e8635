"""Benchmarks: one module per `nox -s bench -- NAME`, each with a `run() -> list[Row]`."""
