"""`wrap`: one execution for each call of a function, whatever kind of function it is."""

import functools
import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from typing import Any, TypeVar, cast, overload

from mesedi._executions import Execution, execution

_F = TypeVar("_F", bound=Callable[..., Any])
_EXHAUSTED = object()


@overload
def wrap(func: _F) -> _F: ...
@overload
def wrap(
    func: None = None,
    *,
    tenant_id: str | None = None,
    release: str | None = None,
    environment: str | None = None,
) -> Callable[[_F], _F]: ...
def wrap(
    func: _F | None = None,
    *,
    tenant_id: str | None = None,
    release: str | None = None,
    environment: str | None = None,
) -> _F | Callable[[_F], _F]:
    """Make each call of a function an execution: `@mesedi.wrap` or `@mesedi.wrap(...)`.

    Works for functions, coroutines, generators and async generators; these last until they
    are exhausted, closed or fail. Arguments as in `execution`.
    """

    def begin() -> Execution:
        return execution(tenant_id=tenant_id, release=release, environment=environment)

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
        with begin():
            return func(*args, **kwargs)

    return wrapped


def _coroutine(func: Callable[..., Any], begin: Callable[[], Execution]) -> Callable[..., Any]:
    async def wrapped(*args: Any, **kwargs: Any) -> Any:
        with begin():
            return await func(*args, **kwargs)

    return wrapped


def _generator(func: Callable[..., Any], begin: Callable[[], Execution]) -> Callable[..., Any]:
    def wrapped(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        run = begin()
        run.start()
        try:
            result = yield from _steps(run, func(*args, **kwargs))
        except BaseException as error:
            run.end(error)
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
            raise
        run.end(None)

    return wrapped


async def _async_step(run: Execution, resume: Callable[[], Awaitable[Any]]) -> Any:
    run.enter()
    try:
        return await resume()
    except StopAsyncIteration:
        return _EXHAUSTED
    finally:
        run.leave()
