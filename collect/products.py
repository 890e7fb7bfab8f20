"""Square matrix products of random numbers, one for each type that a device multiplies.

On zeros a card draws less power and clocks higher than any model would let it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch

from whichwall.collect.device import BFLOAT16_CAPABILITY, Device, dtype_name

TFLOPS, TOPS = "TFLOP/s", "TOP/s"
TF32, INT8, FLOAT8 = "tf32", "int8", "float8_e4m3fn"
TF32_CAPABILITY = 8
# The least size to try a type with that all its kernels take.
TRIAL_SIZE = 64

Work = Callable[[], object]


@dataclass(frozen=True)
class Product:
    """One type of product; `make` takes a size and a device, and returns the product to run."""

    dtype: str  # as the ceilings table names it
    unit: str
    element_bytes: int  # of both factors and the result, one element each
    make: Callable[[int, torch.device], Work]


def plain_product(dtype: torch.dtype) -> Product:
    """Return the product of a type that a model can run in."""
    return Product(dtype_name(dtype), TFLOPS, 3 * dtype.itemsize, partial(_plain, dtype))


def products_of(device: Device, dtype: torch.dtype) -> list[Product]:
    """Return the types that a device multiplies, the run's own first; what it refuses is left out.

    Of a CPU only those that torch has fast kernels for: the others take hundreds of times as long.
    """
    known = [plain_product(dtype), *(plain_product(kind) for kind in _plain_types(device))]
    if _has_tf32(device):
        known.append(Product(TF32, TFLOPS, 12, _tf32))
    known.append(Product(INT8, TOPS, 6, _int8))
    if device.is_gpu:
        known.append(Product(FLOAT8, TFLOPS, 4, _float8))
    distinct = {product.dtype: product for product in known}
    return [product for product in distinct.values() if _accepts(device, product)]


def _plain_types(device: Device) -> list[torch.dtype]:
    if not device.is_gpu:
        return [torch.bfloat16, torch.float32]
    # Before Ampere bfloat16 is emulated, and would measure the emulation.
    native = torch.version.hip is not None or _capability(device) >= BFLOAT16_CAPABILITY
    return [*([torch.bfloat16] if native else []), torch.float16, torch.float32]


def _has_tf32(device: Device) -> bool:
    """Tell whether float32 can be multiplied in fewer bits; elsewhere the setting does nothing."""
    cuda = device.is_gpu and torch.version.hip is None
    return cuda and _capability(device) >= TF32_CAPABILITY


def _capability(device: Device) -> int:
    major: int = torch.cuda.get_device_properties(device.torch).major
    return major


def _accepts(device: Device, product: Product) -> bool:
    """Tell whether this device and this torch have the product at all."""
    try:
        product.make(TRIAL_SIZE, device.torch)()
        device.synchronize()
    except torch.OutOfMemoryError:
        raise
    except RuntimeError:
        return False
    return True


def _plain(dtype: torch.dtype, size: int, device: torch.device) -> Work:
    left, right = (torch.randn(size, size, device=device).to(dtype) for _ in range(2))
    product = torch.empty_like(left)
    return lambda: torch.matmul(left, right, out=product)


def _tf32(size: int, device: torch.device) -> Work:
    """Return a product of float32 numbers that may round its factors to 10 bits."""
    multiply = _plain(torch.float32, size, device)
    setting = torch.backends.cuda.matmul

    def work() -> None:
        before = setting.fp32_precision
        setting.fp32_precision = TF32
        try:
            multiply()
        finally:
            setting.fp32_precision = before

    return work


def _int8(size: int, device: torch.device) -> Work:
    """Return a product of bytes, added up in int32; its kernels want the columns of one factor."""
    shape = (size, size)
    left, right = (
        torch.randint(-128, 128, shape, dtype=torch.int8, device=device) for _ in range(2)
    )
    product = torch.empty(shape, dtype=torch.int32, device=device)
    return lambda: torch._int_mm(left, right.t(), out=product)


def _float8(size: int, device: torch.device) -> Work:
    """Return a product of float8, as inference runs it: with fast accumulation."""
    left, right = (torch.randn(size, size, device=device).to(torch.float8_e4m3fn) for _ in range(2))
    one = torch.ones((), device=device)
    return lambda: torch._scaled_mm(
        left, right.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16, use_fast_accum=True
    )
