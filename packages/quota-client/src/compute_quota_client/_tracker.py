"""The last verdicts on many claims, kept current by one watch that callers share.

    tracker = ClaimTracker(project, "storage.example.com/region=lhr")
    with tracker.follow(wake):            # starts the watch, unless it runs already
        if tracker.synced:                # costs no request
            tracker.verdict(namespace, name)
        else:                             # starting, degraded, or 64 others run
            await project.read(namespace, name)

The verdicts of a tracker are without a wanted claim to compare with, as those of `read`.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Self

from compute_quota_client._exceptions import QuotaUsageError
from compute_quota_client._verdicts import Absent, ClaimKey, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from compute_quota_client._exceptions import QuotaError
    from compute_quota_client._project import ProjectQuota
    from compute_quota_client._tracking import SharedWatch


class Following:
    """A caller's subscription to a tracker, from `follow` until it is closed."""

    def __init__(self, shared: SharedWatch, idle_ttl: timedelta) -> None:
        self._shared = shared
        self._idle_ttl = idle_ttl

    def close(self) -> None:
        """Ends the subscription. Closing twice is allowed."""
        self._shared.remove(self, self._idle_ttl)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class ClaimTracker:
    """The claims of one project that match `selector`; trackers of the same two share one watch."""

    def __init__(
        self,
        project: ProjectQuota,
        selector: str,
        idle_ttl: timedelta = timedelta(minutes=5),
    ) -> None:
        if idle_ttl < timedelta(0):
            raise QuotaUsageError("must not be negative", argument="idle_ttl")
        self._project = project
        self._selector = selector
        self._idle_ttl = idle_ttl

    def follow(self, wake: Callable[[ClaimKey], None]) -> Following:
        """Subscribes the caller; `wake` is called with the key of every claim that changed.

        It is called from the event loop soon after the change, so it must not block; an exception
        of it goes to the loop's exception handler and stops nothing.
        """
        shared = self._project.share_watch(self._selector)
        following = Following(shared, self._idle_ttl)
        shared.add(following, wake)
        return following

    @property
    def synced(self) -> bool:
        """Whether the verdicts are complete and current now; if not, use `ProjectQuota.read`."""
        shared = self._shared
        return shared is not None and shared.is_synced

    @property
    def degraded(self) -> QuotaError | None:
        """Why the claims cannot be watched, for example a missing right; retried every 5 min."""
        shared = self._shared
        return None if shared is None else shared.trouble

    @property
    def running(self) -> bool:
        """Whether its watch runs: not before the first `follow`, not `idle_ttl` after the last, and
        not while 64 others run.
        """
        shared = self._shared
        return shared is not None and shared.is_running

    @property
    def verdicts(self) -> Mapping[ClaimKey, Verdict]:
        """The last verdict on every claim that is known, as of now."""
        shared = self._shared
        return {} if shared is None else dict(shared.verdicts)

    def verdict(self, namespace: str, name: str) -> Verdict | Absent | None:
        """The last verdict on one claim; `Absent` if it does not exist, None if that is unknown."""
        shared = self._shared
        if shared is None:
            return None
        known = shared.verdicts.get(ClaimKey(namespace, name))
        return Absent() if known is None and shared.is_synced else known

    @property
    def _shared(self) -> SharedWatch | None:
        return self._project.shared_watch(self._selector)
