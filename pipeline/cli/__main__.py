"""`python -m scoped_retrieval.pipeline.cli`: the command line, where its script is not on the search path."""

import sys

from . import main

sys.exit(main())
