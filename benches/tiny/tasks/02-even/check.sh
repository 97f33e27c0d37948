python3 - <<'P'
from numbers_ import double, is_even
for n, expected in [(0, True), (1, False), (2, True), (-3, False)]:
    assert is_even(n) is expected, f"is_even({n}) returned {is_even(n)}, expected {expected}"
assert double(4) == 8, "double is broken"
P
