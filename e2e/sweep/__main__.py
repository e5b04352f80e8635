"""`python -m e2e.sweep`; see `nox -s sweep`."""

import sys

from e2e.sweep.command import main

if __name__ == "__main__":
    sys.exit(main())
