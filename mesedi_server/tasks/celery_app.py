"""The Celery application: its tasks, its queue, and what beat starts by itself."""

from celery import Celery

from mesedi_server.config import Settings

SWEEP_S = 5.0
"""How often beat looks for due work that a lost wake-up left."""
IGNORES_S = 30.0
"""How often expired ignores are ended."""
SPIKES_S = 30.0
"""How often projects are looked at whose window slides on without new events."""

DELETE_S = 60.0
"""How often executions are looked for that their project does not keep any longer."""
OUTDATED_S = 600.0
"""How often sessions, sign-in links and attempts that are over are deleted."""

QUEUE = "mesedi"
EXAMINE_DUE = "mesedi.examine_due"
END_IGNORES = "mesedi.end_ignores"
LOOK_FOR_SPIKES = "mesedi.look_for_spikes"
DELETE_OLD = "mesedi.delete_old_executions"
DELETE_OUTDATED = "mesedi.delete_outdated"


def create(settings: Settings) -> Celery:
    """Make the application; it connects when it is first used."""
    celery = Celery("mesedi", broker=settings.broker_url, set_as_current=False)
    celery.conf.update(
        task_default_queue=QUEUE,
        task_ignore_result=True,
        task_store_errors_even_if_ignored=False,
        worker_prefetch_multiplier=1,
        worker_hijack_root_logger=False,
        task_publish_retry=False,
        broker_connection_timeout=2,
        broker_connection_retry_on_startup=True,
        broker_transport_options={"socket_timeout": 5, "socket_connect_timeout": 2},
        beat_schedule={
            "examine-due": {
                "task": EXAMINE_DUE,
                "schedule": SWEEP_S,
                "options": {"expires": SWEEP_S * 2},
            },
            "end-ignores": {
                "task": END_IGNORES,
                "schedule": IGNORES_S,
                "options": {"expires": IGNORES_S},
            },
            "look-for-spikes": {
                "task": LOOK_FOR_SPIKES,
                "schedule": SPIKES_S,
                "options": {"expires": SPIKES_S},
            },
            "delete-old-executions": {
                "task": DELETE_OLD,
                "schedule": DELETE_S,
                "options": {"expires": DELETE_S},
            },
            "delete-outdated": {
                "task": DELETE_OUTDATED,
                "schedule": OUTDATED_S,
                "options": {"expires": OUTDATED_S},
            },
        },
    )
    return celery
