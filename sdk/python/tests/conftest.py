from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine
from typing import Any

import pytest


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Tests are coroutines."""
    test: Callable[..., Any] = pyfuncitem.obj
    if not asyncio.iscoroutinefunction(test):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    run: Callable[[], Coroutine[Any, Any, None]] = functools.partial(
        test, **{name: pyfuncitem.funcargs[name] for name in names}
    )
    asyncio.run(asyncio.wait_for(run(), 120))
    return True
