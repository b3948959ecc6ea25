"""`wrap`: one execution for each call of a function, whatever kind of function it is."""

import functools
import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from typing import Any, TypeVar, cast, overload

from mesedi._budgets import Budget
from mesedi._executions import Execution, execution
from mesedi.errors import MesediHalt

_F = TypeVar("_F", bound=Callable[..., Any])
_EXHAUSTED = object()


@overload
def wrap(func: _F) -> _F: ...
@overload
def wrap(
    func: None = None,
    *,
    budget: Budget | None = None,
    tenant_id: str | None = None,
    agent_name: str | None = None,
    execution_mode: str | None = None,
    release: str | None = None,
    environment: str | None = None,
) -> Callable[[_F], _F]: ...
def wrap(
    func: _F | None = None,
    *,
    budget: Budget | None = None,
    tenant_id: str | None = None,
    agent_name: str | None = None,
    execution_mode: str | None = None,
    release: str | None = None,
    environment: str | None = None,
) -> _F | Callable[[_F], _F]:
    """Make each call of a function an execution: `@mesedi.wrap` or `@mesedi.wrap(...)`.

    Works for functions, coroutines, generators and async generators; these last until they
    are exhausted, closed or fail. A call whose own `budget` ends answers None.

    Args:
        func: the function.
        budget: limits of each call; as in `execution`.
        tenant_id: your customer.
        agent_name: as in `execution`, like all that follow.
        execution_mode: such as `live` or `replay`.
        release: your version.
        environment: such as `production`.
    """
    begin = functools.partial(
        execution,
        tenant_id=tenant_id,
        agent_name=agent_name,
        execution_mode=execution_mode,
        release=release,
        environment=environment,
        budget=budget,
    )

    def decorate(func: _F) -> _F:
        return cast("_F", functools.wraps(func)(_kind_of(func)(func, begin)))

    return decorate if func is None else decorate(func)


def _kind_of(func: Callable[..., Any]) -> Callable[..., Callable[..., Any]]:
    if inspect.isasyncgenfunction(func):
        return _async_generator
    if inspect.isgeneratorfunction(func):
        return _generator
    return _coroutine if inspect.iscoroutinefunction(func) else _function


def _function(func: Callable[..., Any], begin: Callable[[], Execution]) -> Callable[..., Any]:
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        run = begin()
        try:
            with run:
                return func(*args, **kwargs)
        except MesediHalt as halt:
            if not run.owns(halt):
                raise
            return None

    return wrapped


def _coroutine(func: Callable[..., Any], begin: Callable[[], Execution]) -> Callable[..., Any]:
    async def wrapped(*args: Any, **kwargs: Any) -> Any:
        run = begin()
        try:
            with run:
                return await func(*args, **kwargs)
        except MesediHalt as halt:
            if not run.owns(halt):
                raise
            return None

    return wrapped


def _generator(func: Callable[..., Any], begin: Callable[[], Execution]) -> Callable[..., Any]:
    def wrapped(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        run = begin()
        run.start()
        try:
            result = yield from _steps(run, func(*args, **kwargs))
        except BaseException as error:
            run.end(error)
            if _is_own_halt(run, error):
                return None
            raise
        run.end(None)
        return result

    return wrapped


def _steps(run: Execution, inner: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
    # The execution is current only while the inner frame runs: the consumer between two
    # items must not find itself inside it.
    resume = functools.partial(inner.send, None)
    while True:
        try:
            item = _step(run, resume)
        except StopIteration as stop:
            return stop.value
        try:
            resume = functools.partial(inner.send, (yield item))
        except GeneratorExit:
            _step(run, inner.close)
            raise
        except BaseException as error:  # noqa: BLE001 - the inner generator decides about it
            resume = functools.partial(inner.throw, error)


def _step(run: Execution, resume: Callable[[], Any]) -> Any:
    run.enter()
    try:
        return resume()
    finally:
        run.leave()


def _async_generator(
    func: Callable[..., Any], begin: Callable[[], Execution]
) -> Callable[..., Any]:
    async def wrapped(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        run = begin()
        run.start()
        try:
            inner = func(*args, **kwargs)
            resume = functools.partial(inner.asend, None)
            while (item := await _async_step(run, resume)) is not _EXHAUSTED:
                try:
                    resume = functools.partial(inner.asend, (yield item))
                except GeneratorExit:  # noqa: PERF203 - each item needs its own
                    await _async_step(run, inner.aclose)
                    raise
                except BaseException as error:  # noqa: BLE001 - the inner one decides about it
                    resume = functools.partial(inner.athrow, error)
        except BaseException as error:
            run.end(error)
            if _is_own_halt(run, error):
                return
            raise
        run.end(None)

    return wrapped


def _is_own_halt(run: Execution, error: BaseException) -> bool:
    return isinstance(error, MesediHalt) and run.owns(error)


async def _async_step(run: Execution, resume: Callable[[], Awaitable[Any]]) -> Any:
    run.enter()
    try:
        return await resume()
    except StopAsyncIteration:
        return _EXHAUSTED
    finally:
        run.leave()
