python3 - <<'P'
from total import total
for n, expected in [(1, 1), (3, 6), (10, 55)]:
    assert total(n) == expected, f"total({n}) returned {total(n)}, expected {expected}"
P
