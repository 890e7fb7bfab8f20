import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.properties import PROPERTY
from whichwall.collect.kineto.repair import Repairs, repair

# An exponent of three digits is taken for a number that no float holds.
finite = st.floats(-1e99, 1e99)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | finite | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@PROPERTY
@given(values, st.sampled_from([None, 2]), st.booleans())
def test_legal_json_stays_as_it_is(value: object, indent: int | None, escaped: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=escaped).encode()
    repairs = Repairs()
    assert json.loads(repair(text, repairs)) == json.loads(text)
    assert repairs == Repairs()


@pytest.mark.parametrize(
    ("broken", "mended", "repairs"),
    [
        (rb'{"a": "C:\dir\u12"}', {"a": r"C:\dir\u12"}, Repairs(repaired=2)),
        (rb'{"a": "\ud83d alone"}', {"a": "\ufffd alone"}, Repairs(repaired=1)),
        (rb'{"a": "\ud83d\ude00 pair"}', {"a": "\U0001f600 pair"}, Repairs()),
        (b'{"a": "\x01\x1f"}', {"a": "\x01\x1f"}, Repairs(repaired=2)),
        (b'{"a": "\xff\xe4"}', {"a": "\ufffd\ufffd"}, Repairs(repaired=2)),
        (b'{"a": N/A, "N/A": "N/A"}', {"a": None, "N/A": "N/A"}, Repairs(repaired=1)),
        (b'{"a": [NaN, -inf, 1e999, -Infinity, 1e9, "nan"]}',
         {"a": [None, None, None, None, 1e9, "nan"]}, Repairs(nonfinite=4)),
        (b'{"a": [-nan(ind), 1.#INF, 1e-999, -nan]}', {"a": [None, None, 0, None]},
         Repairs(nonfinite=3)),
        (b'{"a": [NA, True, 0x7f, <not known>, ???]}', {"a": [None] * 5}, Repairs(repaired=5)),
        (b'{"a": [.5, 5., +5, 01]}', {"a": [".5", "5.", "+5", "01"]}, Repairs(repaired=4)),
        (b'{"a": 1,, "b": [,2,],}', {"a": 1, "b": [2]}, Repairs(repaired=4)),
        (b'{"a": , "b": }', {"a": None, "b": None}, Repairs(repaired=2)),
        (b'{"args": { , }}', {"args": {}}, Repairs(repaired=1)),
    ],
)  # fmt: skip
def test_each_known_fault_is_mended_and_counted(
    broken: bytes, mended: object, repairs: Repairs
) -> None:
    found = Repairs()
    assert json.loads(repair(broken, found)) == mended
    assert found == repairs
