"""Builds the operators' images from their Containerfiles, without a daemon and without a network.

```
lock, our packages ─► wheelhouse ─┐
Debian's packages ──► base ───────┴─► buildah ─► image ─► check list, SBOM
```

Published builds give the Containerfile a pinned public base; here the base is made from Debian's
packages. Everything is kept below `.images/`, and nothing of it is committed.
"""
