"""The web application: `create_app()` runs under any WSGI server."""

import gc
from threading import BoundedSemaphore
from types import ModuleType

from flask import Flask, request
from werkzeug.exceptions import HTTPException

from mesedi_server import api, pages, runtime
from mesedi_server.api import answers
from mesedi_server.api.bodies import MAX_BYTES
from mesedi_server.config import Settings, from_environment
from mesedi_server.errors import RefusedError, UnavailableError
from mesedi_server.pages import addresses, errors
from mesedi_server.runtime import Runtime
from mesedi_server.slots import Slots
from mesedi_server.store.database import Database
from mesedi_server.tasks import celery_app
from mesedi_server.tasks.wakeups import waker_for

DOWNLOADS = 2
"""Files that a process makes at a time, for clients that read them."""


def create_app(settings: Settings | None = None) -> Flask:
    """Make the application.

    Args:
        settings: by default those of the environment.

    Raises:
        ConfigurationError: a setting is missing or wrong.
    """
    settings = settings or from_environment()
    app = Flask(__name__, static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = MAX_BYTES
    # The SDK takes a redirect for a success, and an id may have two slashes.
    app.url_map.merge_slashes = False
    runtime.attach(app, _runtime(settings))
    api.register(app)
    pages.register(app)
    _register_errors(app)
    app.wsgi_app = Slots(app.wsgi_app, settings.web_threads)  # type: ignore[method-assign]
    return app


def create_served_app(settings: Settings | None = None) -> Flask:
    """Make the application of a process that does nothing else until it ends.

    What is there by now stays: to go through it again and again for garbage takes a tenth of a page's time.
    """
    app = create_app(settings)
    gc.collect()
    gc.freeze()
    return app


def _runtime(settings: Settings) -> Runtime:
    return Runtime(
        settings=settings,
        database=Database(settings.database_url, connections=settings.web_threads),
        waker=waker_for(celery_app.create(settings)),
        halt_slots=BoundedSemaphore(settings.halt_streams),
        download_slots=BoundedSemaphore(DOWNLOADS),
    )


def _register_errors(app: Flask) -> None:
    app.register_error_handler(RefusedError, lambda error: _edge().refused(error))
    app.register_error_handler(UnavailableError, lambda error: _edge().unavailable(error))
    app.register_error_handler(HTTPException, lambda error: _edge().http_error(error))
    app.register_error_handler(Exception, lambda error: _edge().unexpected(app, error))


def _edge() -> ModuleType:
    """Choose who explains errors at this address: a page to people, JSON to programs."""
    return errors if addresses.owns(request.path) else answers
