"""Name, while a model runs, which part of it runs: ranges in a trace to judge roles by.

Every module's forward, and the functions that turn heads, repeat them, attend, build masks and
keep the cache, run inside a range that says which roles are right for them. The innermost range
counts. Ranges cost time on the host, so nothing that is timed runs under them.
"""

import functools
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import ModuleType, TracebackType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from whichwall.collect.role_vocabulary import (
    Names,
    Part,
    Place,
    between,
    call_part,
    function_part,
    part_of,
    place_below,
)
from whichwall.schemas import roles
from whichwall.schemas.role_ranges import range_name

Function = Callable[..., Any]

# By this name a model's own file knows the table of attention functions.
ATTENTION_TABLE, CHOSEN_ATTENTION = "ALL_ATTENTION_FUNCTIONS", "_attn_implementation"
CACHE_UPDATE = "update"


class RoleRanges:
    """Ranges for one model, as a context manager; leaving it restores everything."""

    def __init__(self, model: Any) -> None:
        """Take a causal language model, its head included."""
        self.model = model
        self._inside: list[tuple[Place, int | None]] = []
        self._undo = ExitStack()

    def __enter__(self) -> "RoleRanges":
        """Wrap the model's modules, and the functions that its files name."""
        with ExitStack() as undo:
            self._undo = undo
            self._wrap_modules()
            for file in _files(self.model):
                self._wrap_functions(file)
            self._wrap_attention()
            self._wrap_caches()
            undo.enter_context(_Calls(self))
            self._undo = undo.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Restore what was wrapped, last first."""
        self._undo.close()

    @contextmanager
    def part(self, part: Part, layer: int | None = None) -> Iterator[None]:
        """Run a block as a part of the model; without a layer, in that of the part around it."""
        if layer is None and self._inside:
            layer = self._inside[-1][1]
        self._inside.append((part.place, layer))
        try:
            with torch.profiler.record_function(range_name(part.accepted, layer)):
                yield
        finally:
            self._inside.pop()

    def outside(self) -> Any:
        """Return a block for what a pass runs around the model."""
        return self.part(between(Place.OUTSIDE))

    def call(self, name: str) -> Part | None:
        """Return what a call of torch is here, where that is more than the range around it says."""
        return call_part(name, self._inside[-1][0]) if self._inside else None

    def _wrapped(self, function: Function, part: Part, layer: int | None = None) -> Function:
        @functools.wraps(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with self.part(part, layer):
                return function(*args, **kwargs)

        return inside

    def _replace(self, owner: Any, name: str, function: Function) -> None:
        """Set an attribute until the end; what only a class or nothing had is deleted again."""
        own = vars(owner)
        if name in own:
            self._undo.callback(setattr, owner, name, own[name])
        else:
            self._undo.callback(delattr, owner, name)
        setattr(owner, name, function)

    def _wrap_modules(self) -> None:
        for module, part, layer in module_parts(self.model):
            self._replace(module, "forward", self._wrapped(module.forward, part, layer))
            if part.place in (Place.TOP, Place.BODY):
                self._wrap_mask_methods(module)

    def _wrap_mask_methods(self, module: Any) -> None:
        for name in dir(type(module)):
            part = function_part(name)
            if part is not None and part.accepted == (roles.MASK,):
                self._replace(module, name, self._wrapped(getattr(module, name), part))

    def _wrap_functions(self, file: ModuleType) -> None:
        for name, function in list(vars(file).items()):
            part = function_part(name)
            if part is not None and callable(function) and not isinstance(function, type):
                self._replace(file, name, self._wrapped(function, part))

    def _wrap_attention(self) -> None:
        """Wrap the entry of the attention tables that the model takes its function from."""
        chosen: str | None = getattr(self.model.config, CHOSEN_ATTENTION, None)
        tables = {id(t): t for f in _files(self.model) if (t := getattr(f, ATTENTION_TABLE, None))}
        for table in tables.values():
            if chosen is not None and chosen in table:
                function = table[chosen]
                table[chosen] = self._wrapped(function, between(Place.ATTENTION_FUNCTION))
                self._undo.callback(_restore, table, chosen, function)

    def _wrap_caches(self) -> None:
        from transformers import cache_utils

        for kind in list(vars(cache_utils).values()):
            if isinstance(kind, type) and issubclass(kind, cache_utils.Cache):
                update = vars(kind).get(CACHE_UPDATE)
                if update is not None:
                    part = Part(Place.LEAF, (roles.KV_CACHE,))
                    self._replace(kind, CACHE_UPDATE, self._wrapped(update, part))


class _Calls(TorchFunctionMode):
    """Give calls of torch a range of their own where the one around them accepts several roles."""

    def __init__(self, ranges: RoleRanges) -> None:
        super().__init__()
        self.ranges = ranges

    def __torch_function__(
        self,
        func: Function,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        part = self.ranges.call(getattr(func, "__name__", ""))
        if part is None:
            return func(*args, **(kwargs or {}))
        with self.ranges.part(part):
            return func(*args, **(kwargs or {}))


def _restore(table: Any, name: str, function: Function) -> None:
    """Take an entry back out of a table that may have it from a table behind it."""
    del table[name]
    if table.get(name) is not function:
        table[name] = function


def module_parts(model: Any) -> Iterator[tuple[Any, Part, int | None]]:
    """Yield every module that is a part, with the layer it stands in."""
    root = between(Place.TOP)
    yield model, root, None
    yield from _below(model, Place.TOP, None)


def _below(module: Any, inside: Place, layer: int | None) -> Iterator[tuple[Any, Part, int | None]]:
    listed = isinstance(module, torch.nn.ModuleList)
    for name, child in module.named_children():
        names = _names(name, child, listed=listed)
        part = part_of(names, inside)
        place, where = place_below(names, inside), layer
        if part is not None:
            place = part.place
            if place == Place.LAYER and inside != Place.LAYER:
                where = int(name)
            yield child, part, where
        if place != Place.LEAF:
            yield from _below(child, place, where)


def _names(name: str, module: Any, *, listed: bool) -> Names:
    own = list(module.parameters(recurse=False))
    return Names(
        name=name,
        kind=type(module).__name__,
        children=frozenset(path.rpartition(".")[2] for path, _ in module.named_modules() if path),
        has_weights=bool(own),
        has_matrices=any(weight.ndim > 1 for weight in own),
        listed=listed,
    )


def _files(model: Any) -> list[ModuleType]:
    """Return the files that the model's classes and its attention function are written in."""
    names = {
        kind.__module__
        for module in model.modules()
        for kind in type(module).__mro__
        if not kind.__module__.startswith(("torch.", "builtins"))
    }
    files = [sys.modules[name] for name in sorted(names) if name in sys.modules]
    chosen = getattr(model.config, CHOSEN_ATTENTION, None)
    for file in list(files):
        table = getattr(file, ATTENTION_TABLE, {})
        if chosen in table and (home := sys.modules.get(table[chosen].__module__)) not in files:
            files.append(home) if home else None
    return files
