"""Number the kernels of two runs alike, and say what it is worth to match two of them."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from whichwall.analyze.roles.align import NOBODY, Numbers, Worth
from whichwall.analyze.roles.kernel_words import kernel_word
from whichwall.schemas.activities import Activities

# What makes two kernels the same: the whole launch, the name, or only what the name says it
# does. The steps of worth are such that no two poorer matches are taken for one better.
TOKEN = (Activities.name, Activities.grid_x, Activities.grid_y, Activities.grid_z,
         Activities.block_x)  # fmt: skip
SAME_LAUNCH, SAME_NAME, SAME_WORK = 9, 4, 1

_ROW = "row"


@dataclass(frozen=True)
class Tokens:
    """Kernels as numbers, the replay's and the reference's alike."""

    here: Numbers
    there: Numbers
    name: Numbers  # of each token
    work: Numbers  # of each token; -1 where the name does not say what it does

    def worth(self, mine: Numbers, others: Numbers) -> tuple[Numbers, Numbers, Worth]:
        """Return two sequences renumbered from 0, with what their tokens' matches are worth."""
        kinds, flat = np.unique(np.concatenate([mine, others]), return_inverse=True)
        name, work = self.name[kinds], self.work[kinds]
        worth = np.where((work[:, None] == work) & (work != NOBODY), SAME_WORK, 0)
        worth[name[:, None] == name] = SAME_NAME
        np.fill_diagonal(worth, SAME_LAUNCH)
        return flat[: len(mine)], flat[len(mine) :], worth.astype(np.int32)


def number_alike(activities: pl.DataFrame, reference: pl.DataFrame) -> Tokens:
    """Number distinct launches of both runs together, in the order in which they are met."""
    both = pl.concat([activities.select(TOKEN), reference.select(TOKEN)])
    kinds = both.with_row_index(_ROW).group_by(TOKEN, maintain_order=True).agg(_ROW)
    token = np.empty(both.height, np.int64)
    for number, rows in enumerate(kinds[_ROW]):
        token[rows.to_numpy()] = number
    names = kinds[Activities.name].to_list()
    words = [kernel_word(name) for name in names]
    number_of = {word: i for i, word in enumerate(sorted({w for w in words if w}))}
    return Tokens(
        here=token[: activities.height],
        there=token[activities.height :],
        name=np.unique(np.array(names), return_inverse=True)[1],
        work=np.array([number_of.get(word or "", NOBODY) for word in words], np.int64),
    )
