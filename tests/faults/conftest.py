"""What the deaths of judge workers need."""

from tests.server.conftest import app, database, make_tenant, module_database_url, tenant
from tests.server.judges.conftest import judged, settings

__all__ = ["app", "database", "judged", "make_tenant", "module_database_url", "settings", "tenant"]
