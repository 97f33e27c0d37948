def is_leap(year):
    return False
