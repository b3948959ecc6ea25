"""Groups of commands of `mesedi-eval`, a module each; `evaluators.cli` imports them when they are asked for."""
