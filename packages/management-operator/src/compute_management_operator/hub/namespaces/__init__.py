"""The hub-namespace controller: `ns-<uid>` is deleted once it is empty and the project namespace of
that UID is proven gone (management.md 4, Reclaim).
"""
