"""torch.utils._contextlib: contexts that are decorators too."""

import functools
import inspect


def context_decorator(ctx, func):
    """The function under a new context each call; `ctx` is the context, or what makes one."""
    make = ctx.clone if hasattr(ctx, "clone") else ctx if callable(ctx) else lambda: ctx
    if inspect.isgeneratorfunction(func):

        @functools.wraps(func)
        def generate(*args, **kwargs):
            with make():
                yield from func(*args, **kwargs)

        return generate

    @functools.wraps(func)
    def wrapped(*args, **kwargs):
        with make():
            return func(*args, **kwargs)

    return wrapped


class _DecoratorContextManager:
    """A context that decorates functions when it is called with one."""

    def __call__(self, orig_func):
        return context_decorator(self.clone, orig_func)

    def clone(self):
        """A new context like this one."""
        return type(self)()


class _NoParamDecoratorContextManager(_DecoratorContextManager):
    """The same, also without parentheses."""

    def __new__(cls, orig_func=None):
        return super().__new__(cls) if orig_func is None else cls()(orig_func)
