"""What can happen to some executions, in any order: their events in batches, repeated, examined in between."""

from hypothesis import HealthCheck, settings

# A busy machine is no reason to fail; the database is shared, each example has a project of its own.
patient = settings(
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)

EXECUTIONS = ["one", "two", "three"]


def steps(pipeline, sent, random, also=()):
    """Everything that happens to the executions, each step a function, in some order; `also` among them."""
    happening = [*_batches(pipeline, sent, random), *also]
    happening += [lambda name=name: pipeline.close(name) for name in executions_of(sent)]
    happening += [lambda: pipeline.examine(settle_s=0)] * random.randint(0, 3)
    happening += [pipeline.redetect] * random.randint(0, 1)
    random.shuffle(happening)
    return happening


def executions_of(sent):
    return sorted({event["execution_id"] for event in sent})


def _batches(pipeline, sent, random):
    doubled = sent + random.sample(sent, len(sent) // 4)
    random.shuffle(doubled)
    while doubled:
        size = random.randint(1, len(doubled))
        yield lambda batch=doubled[:size]: pipeline.send(*batch, debounce_s=0)
        doubled = doubled[size:]
