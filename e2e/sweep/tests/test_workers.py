"""Forked workers: every line arrives, and a worker that fails is a line of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator

from e2e.sweep.workers import Line, run_forked


def work(job: str) -> Iterator[Line]:
    yield {"job": job, "text": "x" * 100_000}
    if job == "raises":
        raise LookupError("seven is missing")
    if job == "dies":
        os._exit(3)
    yield {"job": job, "ended": True}


def test_all_lines_of_all_jobs_arrive() -> None:
    jobs = ["one", "two", "three"]
    lines = [(job, line) for job, line in run_forked(jobs, work, 2) if "ended" in line]
    assert sorted(job for job, _ in lines) == sorted(jobs)
    assert all(line["job"] == job for job, line in lines)


def test_a_job_that_raises_is_a_failure_of_its_own() -> None:
    failures = [
        line["failure"] for _, line in run_forked(["one", "raises"], work, 1) if "failure" in line
    ]
    (failure,) = failures
    assert "seven is missing" in str(failure)


def test_a_process_that_dies_is_a_failure_of_its_own() -> None:
    failures = [line["failure"] for _, line in run_forked(["dies"], work, 1) if "failure" in line]
    assert failures == ["the worker ended with status 768"]
