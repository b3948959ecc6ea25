"""Whom the embedded servers run as."""

import os
import pwd
from pathlib import Path
from typing import NamedTuple

from mesedi_server.embedded.errors import AccountMissingError


class Account(NamedTuple):
    """An unprivileged user that root hands the servers to."""

    uid: int
    gid: int

    def own(self, folder: Path) -> None:
        """Give a folder, not its content, to this account."""
        os.chown(folder, self.uid, self.gid)


def server_account(cluster: Path) -> Account | None:
    """Say whom to run the servers as: None for the present user, who is not root.

    For root it is the owner of the database cluster, else `nobody`: PostgreSQL refuses to run as
    root, and data that a user made before must stay that user's.

    Raises:
        AccountMissingError: root, and the system has no account `nobody`.
    """
    if os.geteuid() != 0:
        return None
    if cluster.is_dir() and (owner := cluster.stat()).st_uid != 0:
        return Account(owner.st_uid, owner.st_gid)
    try:
        nobody = pwd.getpwnam("nobody")
    except KeyError:
        raise AccountMissingError(
            "PostgreSQL does not run as root, and this system has no account `nobody` to run it "
            "under. Start as an ordinary user, or give MESEDI_DATABASE_URL and MESEDI_BROKER_URL."
        ) from None
    return Account(nobody.pw_uid, nobody.pw_gid)
