"""Catch the calls of a model's parts in one pass: what is called, with what, and on which cache.

Parts are recognised by name, place and class, as roles are (`role_vocabulary`), so no architecture
is named here. The outermost part counts: a norm inside attention is attention's.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from whichwall.collect.decoder import greedy
from whichwall.collect.role_ranges import module_parts
from whichwall.collect.role_vocabulary import Place
from whichwall.schemas import roles
from whichwall.schemas.parts import ATTENTION, EMBEDDING, HEAD, MLP, NORM, SAMPLING

_OF_PLACE = {
    Place.ATTENTION: ATTENTION,
    **dict.fromkeys((Place.MLP, Place.MIXTURE, Place.EXPERTS, Place.SHARED), MLP),
}
_OF_ROLE = {roles.EMBEDDING: EMBEDDING, roles.NORM: NORM, roles.LM_HEAD: HEAD}
# Some layers hold these without a module around them.
_OF_MLP = (roles.GATE_UP_PROJ, roles.ACTIVATION, roles.DOWN_PROJ, roles.ROUTER, roles.EXPERTS)
# Which experts are read, the router says anew for every token.
_CHOSEN_BY_ROUTER = (Place.MIXTURE, Place.EXPERTS)


@dataclass(frozen=True)
class Call:
    """One call of a part, as the pass made it."""

    part: str
    run: Callable[[], object]
    parameters: int | None  # weights that it reads, as a count; None: the router chooses


class PassCalls:
    """The calls of one pass in its order, and the caches as they were before it."""

    def __init__(self) -> None:
        """Start with nothing caught."""
        self.calls: list[Call] = []
        self._caches: dict[int, _CacheState] = {}
        self._shared: dict[tuple[object, ...], torch.Tensor] = {}

    def of(self, part: str) -> list[Call]:
        """Return the calls of one part."""
        return [call for call in self.calls if call.part == part]

    def restore_caches(self) -> None:
        """Give every cache back the length that it had before the pass."""
        for state in self._caches.values():
            state.restore()

    def see_caches(self, _module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Remember caches at first sight, which is before the pass adds to them."""
        from transformers.cache_utils import Cache

        for value in (*args, *kwargs.values()):
            if isinstance(value, Cache) and id(value) not in self._caches:
                self._caches[id(value)] = _CacheState(value)

    def note(
        self, part: str, place: Place, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any],
        output: Any,
    ) -> None:  # fmt: skip
        """Keep one call; where layers are alike, all of them with the first one's input."""
        args = tuple(self._share(part, i, value) for i, value in enumerate(args))
        kwargs = {name: self._share(part, name, value) for name, value in kwargs.items()}
        read: int | None = sum(p.numel() for p in module.parameters())
        if isinstance(module, torch.nn.Embedding):
            read = output.numel()
        elif place in _CHOSEN_BY_ROUTER:
            read = None
        self.calls.append(Call(part, partial(module, *args, **kwargs), read))

    def note_sampling(self, _module: Any, _args: tuple[Any, ...], output: Any) -> None:
        """Keep the choice of the next token, from the logits of the pass."""
        self.calls.append(Call(SAMPLING, partial(greedy, output.logits), 0))

    def _share(self, part: str, slot: object, value: Any) -> Any:
        """Return the first tensor alike in place of another: a prompt's would fill the memory."""
        if not isinstance(value, torch.Tensor) or not value.is_floating_point():
            return value
        alike = (part, slot, value.shape, value.stride(), value.dtype)
        return self._shared.setdefault(alike, value)


class _CacheState:
    """What a cache holds at a moment, kept without a copy of its keys and values.

    A cache that grows replaces its tensors, so the old ones are still there; one that does not is
    written again at the same places once its counters are set back.
    """

    def __init__(self, cache: Any) -> None:
        owners = [cache, *cache.layers]
        self._owners = [(owner, _kept(vars(owner))) for owner in owners]

    def restore(self) -> None:
        for owner, state in self._owners:
            vars(owner).clear()
            vars(owner).update(_kept(state))


def _kept(state: dict[str, Any]) -> dict[str, Any]:
    """Copy what is changed in place: lists, dictionaries and counters."""
    kept: dict[str, Any] = {}
    for name, value in state.items():
        if isinstance(value, torch.Tensor) and value.dim() == 0:
            kept[name] = value.clone()
        else:
            kept[name] = copy(value) if isinstance(value, list | dict) else value
    return kept


def catch(model: Any, run: Callable[[], None]) -> PassCalls:
    """Run one pass of a causal language model, and return the calls of its parts.

    A part that the model uses without calling it as a module is not caught.
    """
    caught = PassCalls()
    with ExitStack() as hooks:
        for module, part, place in _outermost(model):
            seen = module.register_forward_pre_hook(caught.see_caches, with_kwargs=True)
            hooks.callback(seen.remove)
            noting = partial(caught.note, part, place)
            hooks.callback(module.register_forward_hook(noting, with_kwargs=True).remove)
        hooks.callback(model.register_forward_hook(caught.note_sampling).remove)
        run()
    return caught


def _outermost(model: Any) -> Iterator[tuple[Any, str, Place]]:
    """Yield every module that is a part and stands in no other."""
    covered: set[int] = set()
    layers: set[int | None] = set()
    in_layers: set[int] = set()
    for module, role, layer in module_parts(model):
        # Deeper down, in a state space for one, matrices of the same names are no MLP's.
        if role.place == Place.LAYER and layer not in layers:
            layers.add(layer)
            in_layers.update(map(id, module.children()))
        part = _OF_PLACE.get(role.place)
        if role.place == Place.LEAF and role.accepted:
            part = _OF_ROLE.get(role.accepted[0])
            if part is None and id(module) in in_layers and role.accepted[0] in _OF_MLP:
                part = MLP
        if part is not None and id(module) not in covered:
            covered.update(map(id, module.modules()))
            yield module, part, role.place
