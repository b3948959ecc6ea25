"""Groups of commands of `mesedi-eval`, a module each; `evaluators.cli` puts them together."""
