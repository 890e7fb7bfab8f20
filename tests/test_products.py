"""Square matrix products: which types a device has, and what each multiplies."""

import pytest
import torch

from whichwall.collect import products
from whichwall.collect.device import choose_device
from whichwall.collect.products import INT8, products_of

CPU = choose_device("cpu")


def test_a_cpu_has_the_types_that_torch_multiplies_fast_there() -> None:
    assert [(p.dtype, p.unit) for p in products_of(CPU, torch.float32)] == [
        ("float32", "TFLOP/s"),
        ("bfloat16", "TFLOP/s"),
        ("int8", "TOP/s"),
    ]


def test_the_type_of_the_run_comes_first_and_once() -> None:
    found = [p.dtype for p in products_of(CPU, torch.bfloat16)]

    assert found == ["bfloat16", "float32", "int8"]


def test_a_type_that_the_device_refuses_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(size: int, device: torch.device) -> products.Work:
        raise RuntimeError("no such kernel")

    monkeypatch.setattr(products, "_int8", refuse)

    assert INT8 not in {p.dtype for p in products_of(CPU, torch.float32)}


@pytest.mark.parametrize("product", products_of(CPU, torch.float32), ids=lambda p: p.dtype)
def test_a_product_is_square_and_within_the_bytes_it_states(product: products.Product) -> None:
    result = product.make(32, torch.device("cpu"))()

    assert isinstance(result, torch.Tensor)
    assert result.shape == (32, 32)
    assert result.element_size() < product.element_bytes
