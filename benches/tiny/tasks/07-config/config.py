def parse(text):
    """Reads lines of the form name=value."""
    values = {}
    for line in text.split("\n"):
        name, value = line.split("=", 1)
        values[name] = value
    return values
