python3 - <<'P'
from slug import slug
for text, expected in [("Hello", "hello"), ("Hello World", "hello-world"), ("What is new?", "what-is-new"), ("A (b) 3!", "a-b-3")]:
    assert slug(text) == expected, f"slug({text!r}) returned {slug(text)!r}, expected {expected!r}"
P
