"""The servers of `mesedi-server up`, and the road to them for other commands."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

from mesedi_server.embedded.errors import FolderInUseError, FolderNotFoundError
from mesedi_server.embedded.folder import Addresses, DataFolder, unusable
from mesedi_server.embedded.postgres import Postgres
from mesedi_server.embedded.valkey import Valkey


class EmbeddedServers:
    """PostgreSQL and Valkey as child processes that keep their data in one folder.

    They end with this process, however it ends; start them from a thread that lives as long.

    Args:
        data_dir: made if it does not exist.
        durable: False for tests: nothing is kept safe from a crash, and the owner of the
            database may create more of them.
    """

    def __init__(self, data_dir: Path, *, durable: bool = True) -> None:
        self._folder = DataFolder(data_dir)
        self._postgres = Postgres(self._folder, durable=durable)
        self._valkey = Valkey(self._folder, durable=durable)

    def start(self) -> Addresses:
        """Start both and return when they answer.

        Raises:
            EmbeddedError: the folder or the programs do not allow it; nothing is left running.
        """
        self._folder.claim()
        try:
            self._valkey.launch()
            self._postgres.launch()
            self._postgres.wait()
            self._valkey.wait()
            addresses = Addresses(self._postgres.database_url, self._valkey.broker_url)
            self._folder.publish(addresses)
        except OSError as error:
            self.stop()
            raise unusable(self._folder.path, error) from error
        except BaseException:
            self.stop()
            raise
        return addresses

    def stop(self) -> None:
        """Stop both, within a bounded time. Nothing happens if they do not run."""
        self._valkey.stop()
        self._postgres.stop()
        self._folder.release()

    def casualty(self) -> str | None:
        """Say which server ended by itself, with the end of its log; None while both run."""
        for server in (self._postgres, self._valkey):
            if server.ended():
                return str(server.log.failure("ended by itself"))
        return None

    def __enter__(self) -> Addresses:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.stop()


def connect_addresses(data_dir: Path) -> Addresses | None:
    """Say where the servers of a data folder listen; None if no process runs them.

    Raises:
        FolderUnusableError: the folder is not ours to read.
    """
    return DataFolder(data_dir).addresses()


@contextmanager
def reach_database(data_dir: Path) -> Iterator[str]:
    """Give the database's address: of the running server, or of PostgreSQL started meanwhile.

    Raises:
        FolderNotFoundError: no server ever kept data there.
        EmbeddedError: PostgreSQL cannot run there.
    """
    folder = DataFolder(data_dir)
    if running := _running_or_claimed(folder):
        yield running.database_url
        return
    postgres = Postgres(folder)
    try:
        postgres.launch()
        postgres.wait()
        yield postgres.database_url
    finally:
        postgres.stop()
        folder.release()


def _running_or_claimed(folder: DataFolder) -> Addresses | None:
    if running := folder.addresses():
        return running
    if not folder.postgres.is_dir():
        raise FolderNotFoundError(
            f"There are no data in {folder.path}. Name the folder that `mesedi-server up` uses "
            "with --data DIR, or start it first."
        )
    try:
        folder.claim()
    except FolderInUseError:
        # The server started in the meantime.
        if running := folder.addresses():
            return running
        raise
    return None
