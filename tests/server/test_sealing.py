"""Secrets at rest."""

import stat

import pytest

from mesedi_server.config import Settings, from_environment
from mesedi_server.errors import ConfigurationError
from mesedi_server.sealing import (
    NoSecretKeyError,
    WrongSecretKeyError,
    seal,
    secret_of_folder,
    unseal,
)

SECRET = "s" * 32
TEXT = "sk-judge-1234567890"


def test_a_sealed_text_opens_again_and_shows_nothing():
    sealed = seal(SECRET, TEXT, "proj-1")

    assert unseal(SECRET, sealed, "proj-1") == TEXT
    assert TEXT.encode() not in sealed
    assert seal(SECRET, TEXT, "proj-1") != sealed


def test_it_opens_with_no_other_secret_and_nowhere_else():
    sealed = seal(SECRET, TEXT, "proj-1")

    for secret, context in ((SECRET + "x", "proj-1"), (SECRET, "proj-2")):
        with pytest.raises(WrongSecretKeyError):
            unseal(secret, sealed, context)


@pytest.mark.parametrize("place", [0, 1, 13, -1])
def test_a_damaged_one_does_not_open(place):
    damaged = bytearray(seal(SECRET, TEXT, "proj-1"))
    damaged[place] ^= 1

    with pytest.raises(WrongSecretKeyError):
        unseal(SECRET, bytes(damaged), "proj-1")


@pytest.mark.parametrize("length", [0, 1, 12, 13, 20])
def test_a_shortened_one_does_not_open(length):
    with pytest.raises(WrongSecretKeyError):
        unseal(SECRET, seal(SECRET, TEXT, "proj-1")[:length], "proj-1")


def test_without_a_secret_nothing_is_sealed():
    with pytest.raises(NoSecretKeyError, match="MESEDI_SECRET_KEY"):
        seal("", TEXT, "proj-1")


def test_a_folder_keeps_one_secret_for_its_owner_alone(tmp_path):
    secret = secret_of_folder(tmp_path)

    assert secret_of_folder(tmp_path) == secret
    assert len(secret) >= 32
    assert stat.S_IMODE((tmp_path / "secret-key").stat().st_mode) == 0o600


def test_a_short_secret_is_refused_and_none_is_shown():
    needed = {"MESEDI_DATABASE_URL": "postgresql:///x", "MESEDI_BROKER_URL": "redis://y"}

    with pytest.raises(ConfigurationError, match="MESEDI_SECRET_KEY") as refused:
        from_environment(needed | {"MESEDI_SECRET_KEY": "hunter2"})

    assert "hunter2" not in str(refused.value)
    assert SECRET not in repr(Settings("postgresql:///x", "redis://y", secret_key=SECRET))
