"""`python -m paribus`."""

import sys

from paribus.cli import main

sys.exit(main())
