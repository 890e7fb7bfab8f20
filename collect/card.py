"""What is run where no model is: device, type, destination and command, with defaults resolved."""

import time
from dataclasses import dataclass
from datetime import UTC, datetime

import torch

from whichwall.collect.device import Device, choose_device, choose_dtype, dtype_name
from whichwall.collect.options import CollectOptions, bare_command_line, default_out
from whichwall.collect.writing import Origin
from whichwall.schemas.folder import RunWriter
from whichwall.schemas.points import DONE, Points


@dataclass(frozen=True)
class Card:
    """A device to be measured by itself."""

    options: CollectOptions
    device: Device
    dtype: torch.dtype
    created_ns: int

    def writer(self) -> RunWriter:
        """Return a writer into traces/, to a folder named from mode, device and time."""
        utc = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        out = default_out(self.options.mode, None, self.device.name, utc)
        return RunWriter(out, overwrite=self.options.overwrite)

    def origin(self) -> Origin:
        """Return how the run came to be, for its manifest."""
        return Origin(
            mode=self.options.mode,
            command=bare_command_line(self.options, self.device.kind, dtype_name(self.dtype)),
            created_ns=self.created_ns,
            on_gpu=self.device.is_gpu,
        )

    def point(
        self, number: int, label: str | None = None, reason: str | None = None
    ) -> dict[str, object]:
        """Return the row of a point at which no model ran; `reason` says what did."""
        return {
            Points.point: number,
            Points.label: label,
            Points.dtype: dtype_name(self.dtype),
            Points.outcome: DONE,
            Points.reason: reason,
        }


def resolve_card(options: CollectOptions) -> Card:
    """Return what the options mean on this machine, without a model.

    Raises:
        CollectError: no usable device.
    """
    created_ns = time.time_ns()
    device = choose_device(options.device)
    return Card(options, device, choose_dtype(options.dtype, device), created_ns)
