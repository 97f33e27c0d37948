python3 - <<'P'
from fizz import fizz
for n, expected in [(15, "fizzbuzz"), (30, "fizzbuzz"), (9, "fizz"), (10, "buzz"), (7, "7")]:
    assert fizz(n) == expected, f"fizz({n}) returned {fizz(n)!r}, expected {expected!r}"
P
