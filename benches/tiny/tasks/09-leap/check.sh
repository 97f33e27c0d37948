python3 - <<'P'
from leap import is_leap
for year, expected in [(2024, True), (2023, False), (1900, False), (2000, True)]:
    assert is_leap(year) == expected, f"is_leap({year}) returned {is_leap(year)}, expected {expected}"
P
