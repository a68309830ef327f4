"""python -m brook"""

import sys

from brook.cli import main

sys.exit(main())
