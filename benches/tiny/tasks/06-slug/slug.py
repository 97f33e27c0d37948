def slug(text):
    return text
