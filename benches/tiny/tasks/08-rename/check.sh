python3 - <<'P'
import shapes
assert hasattr(shapes, "rectangle_area"), "shapes.py has no function rectangle_area"
assert not hasattr(shapes, "area"), "shapes.py still has the function area"
from report import report
assert report(2, 3) == "area: 6", f"report(2, 3) returned {report(2, 3)!r}, expected 'area: 6'"
P
