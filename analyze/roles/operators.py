"""Read recorded operators: the word that names each, and the shapes and types of its tensors."""

import json
from math import prod
from typing import NamedTuple, TypeGuard

Shape = tuple[int, ...]

TENSOR_LIST = "TensorList"
# Types that stand for an argument without a shape of its own.
SHAPELESS = frozenset({"", "Scalar", "ScalarList", "GenericList", TENSOR_LIST})
LARGEST_SIZE = 1 << 48  # elements of any one dimension; beyond it a file lies
INTEGER_TYPES = frozenset(
    {"long int", "int", "short int", "short", "signed char", "unsigned char", "bool", "long"}
)


class Operator(NamedTuple):
    """One operator call as far as its name, shapes and types tell."""

    word: str  # aten::_softmax and aten::softmax_ both are "softmax"
    shapes: tuple[Shape, ...]  # of its tensors in order, lists of tensors laid flat
    types: tuple[str, ...]  # one for each shape; "" inside a list of tensors

    @property
    def main(self) -> int | None:
        """Return the index of its largest tensor, None without tensors.

        Of equally large ones it is the one with more dimensions, then the first.
        """
        if not self.shapes:
            return None
        return max(
            range(len(self.shapes)), key=lambda i: (prod(self.shapes[i]), len(self.shapes[i]), -i)
        )


def read_operator(name: str, dims: str | None, types: str | None) -> Operator:
    """Read one operator from its recorded name and the JSON texts of its sizes and types.

    Texts that are no JSON lists count as absent: such an operator has no shapes.
    """
    shapes: list[Shape] = []
    kinds: list[str] = []
    named = _read_list(types)
    for i, sizes in enumerate(_read_list(dims)):
        kind = named[i] if i < len(named) else None
        if _is_shape(sizes) and (sizes or (isinstance(kind, str) and kind not in SHAPELESS)):
            shapes.append(tuple(sizes))
            kinds.append(kind if isinstance(kind, str) else "")
        elif isinstance(sizes, list) and all(map(_is_shape, sizes)):
            shapes += [tuple(s) for s in sizes]
            kinds += [""] * len(sizes)
    return Operator(read_word(name), tuple(shapes), tuple(kinds))


def _is_shape(sizes: object) -> TypeGuard[list[int]]:
    return isinstance(sizes, list) and all(type(s) is int and 0 <= s < LARGEST_SIZE for s in sizes)


def read_word(name: str) -> str:
    """Return an operator's bare word: no namespace, no leading or trailing underscores."""
    return name.rpartition("::")[2].strip("_").lower()


def _read_list(text: str | None) -> list[object]:
    if not text:
        return []
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return []
    return found if isinstance(found, list) else []
