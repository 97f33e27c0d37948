from shapes import area


def report(width, height):
    return f"area: {area(width, height)}"
