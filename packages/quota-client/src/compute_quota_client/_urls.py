"""The URLs of a project plane, built from checked segments; pure.

Names come from tenants, and one with a dot segment or a slash could address another object. A name
that is not a DNS label or subdomain is refused, each segment is percent-encoded all the same, and
the finished path is compared with the intended one, since a URL library may normalise dot segments.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlsplit

import httpx

from compute_quota_client import _names
from compute_quota_client._exceptions import QuotaUsageError

if TYPE_CHECKING:
    from compute_quota_client._config import QuotaSettings

PROJECTS: Final = ("apis", "resourcemanager.miloapis.com", "v1alpha1", "projects")
CLAIMS_API: Final = ("apis", "quota.miloapis.com", "v1alpha1")
CLAIMS: Final = "resourceclaims"


@dataclass(frozen=True, slots=True)
class PlaneUrls:
    """The URLs of one project plane."""

    origin: str
    prefix: tuple[str, ...]

    def claims(self) -> httpx.URL:
        """All claims of the project, whatever their namespace."""
        return self._build(*CLAIMS_API, CLAIMS)

    def claims_in(self, namespace: str) -> httpx.URL:
        """The claims of one namespace, where they are created."""
        checked = _names.check_label("namespace", namespace)
        return self._build(*CLAIMS_API, "namespaces", checked, CLAIMS)

    def claim(self, namespace: str, name: str) -> httpx.URL:
        """One claim."""
        checked_namespace = _names.check_label("namespace", namespace)
        checked_name = _names.check_subdomain("name", name)
        return self._build(*CLAIMS_API, "namespaces", checked_namespace, CLAIMS, checked_name)

    def namespace(self, name: str) -> httpx.URL:
        """One Namespace."""
        return self._build("api", "v1", "namespaces", _names.check_label("name", name))

    def _build(self, *segments: str) -> httpx.URL:
        intended = "/" + "/".join(quote(segment, safe="") for segment in (*self.prefix, *segments))
        url = httpx.URL(self.origin + intended)
        if url.raw_path.decode() != intended or "//" in intended:
            raise QuotaUsageError("does not make a path of its own", argument="name")
        return url


def plane_urls(origin: str, settings: QuotaSettings, project: str) -> PlaneUrls:
    """The URLs of `project`, which is checked."""
    _names.check_label("project", project)
    base = tuple(segment for segment in settings.base_path.split("/") if segment)
    if settings.plane == "direct":
        return PlaneUrls(origin, base)
    return PlaneUrls(origin, (*base, *PROJECTS, project, "control-plane"))


def origin_of(server: str) -> str:
    """Scheme, host and port of a server's URL; its path is dropped, anything but https refused."""
    if any(not 0x20 < ord(character) < 0x7F for character in server):
        # urlsplit drops CR, LF and TAB: the host would not be the one that is written.
        raise QuotaUsageError("must be a URL of visible ASCII characters", argument="server")
    parts = urlsplit(server)
    if parts.scheme != "https":
        raise QuotaUsageError("must be an https URL", argument="server")
    if parts.hostname is None or "@" in parts.netloc:
        raise QuotaUsageError("must name a host and no user", argument="server")
    try:
        port = parts.port
    except ValueError:
        raise QuotaUsageError("has a port that is none", argument="server") from None
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"https://{host}" if port is None else f"https://{host}:{port}"
