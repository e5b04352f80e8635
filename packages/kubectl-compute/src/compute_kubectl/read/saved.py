"""A capture as a directory of redacted JSON files, and back.

```
DIR/snapshot.json                 namespace, time, planes and how each read ended
DIR/<plane>/<plural>.json         the objects of one kind
```

The directory is written for others to read: a diagnosis of it needs no plane and no credential.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final
from urllib.parse import quote

from compute_api_types.meta import format_timestamp
from compute_api_types.wire import JsonObject, JsonValue
from compute_kubectl.read.redact import redact
from compute_kubectl.snapshot.access import Access
from compute_kubectl.snapshot.capture import Capture, CapturedPlane, Reading
from compute_kubectl.snapshot.json_reads import (
    flag_at,
    number_at,
    object_at,
    objects_at,
    text_at,
    time_at,
)
from compute_kubectl.snapshot.planes import Role

INDEX: Final = "snapshot.json"
API_VERSION: Final = "diagnostics.compute.datumapis.com/v1alpha1"
MOST_BYTES: Final = 256 << 20


class SavedError(Exception):
    """A directory that cannot be written or read; the message names it and the remedy."""


def save(capture: Capture, folder: Path) -> None:
    """Writes the redacted capture; the directory must be empty or not exist.

    Raises:
        SavedError: the directory has files, or cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise SavedError(f"--save: {folder} is not empty; name a new directory")
        for plane in capture.planes:
            _save_plane(plane, folder / quote(plane.name, safe=""))
        _write(folder / INDEX, _index(capture))
    except OSError as failure:
        raise SavedError(f"--save: {folder}: {failure.strerror or failure}") from None


def _save_plane(plane: CapturedPlane, folder: Path) -> None:
    folder.mkdir()
    for plural, reading in plane.readings.items():
        if reading.items:
            items: list[JsonValue] = [redact(item) for item in reading.items]
            _write(folder / f"{plural}.json", {"items": items})


def _write(path: Path, document: JsonObject) -> None:
    path.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n", "utf-8")


def _index(capture: Capture) -> JsonObject:
    return {
        "apiVersion": API_VERSION,
        "kind": "Snapshot",
        "namespace": capture.namespace,
        "at": format_timestamp(capture.at),
        "planes": [_plane_document(plane) for plane in capture.planes],
    }


def _plane_document(plane: CapturedPlane) -> JsonObject:
    readings: dict[str, JsonValue] = {
        plural: {
            "state": one.access.value,
            "detail": one.detail,
            "partial": one.is_partial,
            "at": format_timestamp(one.at) if one.at else "",
        }
        for plural, one in plane.readings.items()
    }
    return {
        "name": plane.name,
        "role": plane.role.value,
        "state": plane.access.value,
        "detail": plane.detail,
        "at": format_timestamp(plane.at) if plane.at else "",
        "skewSeconds": None if plane.skew is None else int(plane.skew.total_seconds()),
        "readings": readings,
    }


# --- loading --------------------------------------------------------------------------------------


def load(folder: Path) -> Capture:
    """The capture of a saved directory.

    Raises:
        SavedError: it is not a directory that `--save` wrote.
    """
    index = _read(folder / INDEX)
    if text_at(index, "kind") != "Snapshot":
        raise SavedError(f"--offline: {folder / INDEX} is no Snapshot; write one with --save DIR")
    return Capture(
        namespace=text_at(index, "namespace"),
        at=time_at(index, "at") or datetime.now(UTC),
        planes=tuple(_load_planes(index, folder)),
    )


def _load_planes(index: JsonObject, folder: Path) -> Iterator[CapturedPlane]:
    for entry in objects_at(index, "planes"):
        name, role = text_at(entry, "name"), text_at(entry, "role")
        if role not in {one.value for one in Role}:
            continue
        skew = number_at(entry, "skewSeconds")
        place = folder / quote(name, safe="")
        readings = {
            plural: _load_reading(object_at(entry, "readings", plural), place, plural)
            for plural in object_at(entry, "readings")
        }
        yield CapturedPlane(
            name=name,
            role=Role(role),
            access=_access(entry),
            detail=text_at(entry, "detail"),
            at=time_at(entry, "at"),
            skew=None if skew is None else timedelta(seconds=skew),
            readings=readings,
        )


def _load_reading(entry: JsonObject, folder: Path, plural: str) -> Reading:
    path = folder / f"{quote(plural, safe='')}.json"
    access = _access(entry)
    items = tuple(objects_at(_read(path), "items")) if path.is_file() else ()
    return Reading(
        access,
        items if access is Access.READ else (),
        time_at(entry, "at"),
        text_at(entry, "detail"),
        flag_at(entry, "partial") is True,
    )


def _access(entry: JsonObject) -> Access:
    state = text_at(entry, "state")
    return Access(state) if state in {one.value for one in Access} else Access.NOT_ASKED


def _read(path: Path) -> JsonObject:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise SavedError(f"--offline: {path} is over {MOST_BYTES >> 20} MiB")
        document: JsonValue = json.loads(path.read_text("utf-8"))
    except OSError as failure:
        raise SavedError(
            f"--offline: {path}: {failure.strerror or failure}; name a directory of --save"
        ) from None
    except (ValueError, RecursionError):
        raise SavedError(f"--offline: {path} is no JSON; name a directory of --save") from None
    return document if isinstance(document, dict) else {}
