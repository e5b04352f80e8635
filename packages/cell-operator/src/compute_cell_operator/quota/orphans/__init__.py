"""Orphaned ResourceClaims of this cell: listed in their projects, compared with slots, released.

A release may be lost with the process that owed it; without a periodic list its claim would reserve
quota for ever (cell.md 12, quota.md B6).
"""
