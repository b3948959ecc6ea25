"""`python -m evaluators` is the command `mesedi-eval`."""

from evaluators.cli import main

main()
