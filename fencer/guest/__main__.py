"""`python -m fencer.guest`: the same as `fencer-guest`, from a checkout."""

import sys

from fencer.guest.cli import main

sys.exit(main())
