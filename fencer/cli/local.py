"""The time zone of this machine, with summer time for the moments that had it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo


class Local(tzinfo):
    """As the system tells it for each moment; `datetime.astimezone` gives one offset for all of them."""

    def utcoffset(self, moment: datetime | None) -> timedelta | None:
        """See `datetime.tzinfo`."""
        return None if moment is None else self._of(moment).utcoffset()

    def tzname(self, moment: datetime | None) -> str | None:
        """See `datetime.tzinfo`."""
        return None if moment is None else self._of(moment).tzname()

    def dst(self, _moment: datetime | None) -> timedelta | None:
        """See `datetime.tzinfo`; nobody asks."""
        return None

    def fromutc(self, moment: datetime) -> datetime:
        """See `datetime.tzinfo`."""
        told = moment.replace(tzinfo=UTC).astimezone()
        local = told.replace(tzinfo=self)  # in the hour that comes twice, the first one
        return local if local.utcoffset() == told.utcoffset() else local.replace(fold=1)

    def _of(self, moment: datetime) -> datetime:
        return moment.replace(tzinfo=None).astimezone()
