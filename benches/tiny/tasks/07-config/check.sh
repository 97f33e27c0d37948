python3 - <<'P'
from config import parse
for text, expected in [("a=1", {"a": "1"}), ("a=1\n\nb=2", {"a": "1", "b": "2"}), ("# x=y\na=1", {"a": "1"}), ("a = 1\n b =c d ", {"a": "1", "b": "c d"})]:
    try:
        got = parse(text)
    except Exception as error:
        got = repr(error)
    assert got == expected, f"parse({text!r}) gave {got}, expected {expected}"
P
