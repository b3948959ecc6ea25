"""What tests of the pages share: a project that has failed, and people who look at it."""

import pytest

from tests.server.pages.people import Staff
from tests.server.tenants import Tenant


@pytest.fixture
def staff(app, database, tenant) -> Staff:
    """People of the test's project."""
    return Staff(app, database, tenant)


@pytest.fixture
def member(staff):
    """A browser of somebody who may change things."""
    return staff.browser("member")


@pytest.fixture
def viewer(staff):
    """A browser of somebody who may look."""
    return staff.browser("viewer")


@pytest.fixture
def other(make_tenant) -> Tenant:
    """Somebody else's project."""
    return make_tenant()
