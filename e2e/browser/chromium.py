"""Debian's Chromium: the one on the PATH, else installed by apt, which needs root."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Self

NAMES: Final = ("chromium", "chromium-browser", "google-chrome")
# Names no host but loopback; the sandbox needs namespaces that root in a container may not make.
ARGUMENTS: Final = (
    "--no-sandbox",
    "--disable-background-networking",
    "--disable-component-update",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)
INSTALL: Final = ("apt-get", "install", "--yes", "--no-install-recommends", "chromium")


class NoBrowserError(Exception):
    """No browser, and no way to install one; the message names what is missing."""


@dataclass(frozen=True, slots=True)
class BrowserFacts:
    """What the machine has."""

    browser: str | None
    is_root: bool
    has_apt: bool

    @classmethod
    def detect(cls) -> Self:
        paths = (shutil.which(name) for name in NAMES)
        browser = next((path for path in paths if path), None)
        return cls(browser, os.geteuid() == 0, shutil.which("apt-get") is not None)


def find_or_install(
    detect: Callable[[], BrowserFacts] = BrowserFacts.detect,
    install: Callable[[], str] | None = None,
) -> str:
    """The path of a browser.

    Raises:
        NoBrowserError: there is none, and apt cannot install one.
    """
    facts = detect()
    if facts.browser is not None:
        return facts.browser
    if not facts.has_apt:
        raise NoBrowserError("no Chromium on the PATH, and no apt-get to install it")
    if not facts.is_root:
        raise NoBrowserError("no Chromium on the PATH; as root: " + " ".join(INSTALL))
    problem = (install or _install)()
    installed = detect().browser
    if installed is None:
        raise NoBrowserError(f"apt-get installed no Chromium: {problem or 'none on the PATH'}")
    return installed


def _install() -> str:
    """The last line of what apt-get complained about."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    problem = ""
    for command in (("apt-get", "update"), INSTALL):
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=600, check=False
        )
        lines = done.stderr.strip().splitlines()
        problem = lines[-1] if done.returncode and lines else ""
    return problem
