"""What a user's browser shows: the page of `kubectl compute ui`, and the documentation site.

```
chromium.py   Debian's Chromium: found, or installed by apt where that is possible
tests/        the page on the demo's planes, the site as `./dev site` builds it
```
"""
