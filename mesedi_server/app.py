"""The web application: `create_app()` runs under any WSGI server."""

from threading import BoundedSemaphore

from flask import Flask
from werkzeug.exceptions import HTTPException

from mesedi_server import api, pages, runtime
from mesedi_server.api import answers
from mesedi_server.api.bodies import MAX_BYTES
from mesedi_server.config import Settings, from_environment
from mesedi_server.errors import RefusedError, UnavailableError
from mesedi_server.runtime import Runtime
from mesedi_server.store.database import Database
from mesedi_server.tasks import celery_app
from mesedi_server.tasks.wakeups import waker_for


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
    runtime.attach(app, _runtime(settings))
    api.register(app)
    pages.register(app)
    _register_errors(app)
    return app


def _runtime(settings: Settings) -> Runtime:
    return Runtime(
        settings=settings,
        database=Database(settings.database_url, connections=settings.web_threads),
        waker=waker_for(celery_app.create(settings)),
        halt_slots=BoundedSemaphore(max(settings.halt_streams, 1)),
    )


def _register_errors(app: Flask) -> None:
    app.register_error_handler(RefusedError, answers.refused)
    app.register_error_handler(UnavailableError, answers.unavailable)
    app.register_error_handler(HTTPException, answers.http_error)
    app.register_error_handler(Exception, lambda error: answers.unexpected(app, error))
