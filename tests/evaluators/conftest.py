import pytest

from evaluators import cli


@pytest.fixture
def command(capsys):
    """Run the command; return its exit code, output and errors."""

    def run(*arguments):
        code = cli.run_command([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run
