"""`python -m mesedi`: see `mesedi._cli`."""

import sys

from mesedi._cli import main

if __name__ == "__main__":
    sys.exit(main())
