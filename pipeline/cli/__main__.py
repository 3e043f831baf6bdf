"""`python -m scoped_retrieval.pipeline.cli`: the command line, for when its script is not on the search path."""

import sys

from . import main

sys.exit(main())
