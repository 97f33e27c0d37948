python3 - <<'P'
from stack import Stack
stack = Stack()
try:
    stack.pop()
    raise AssertionError("pop of an empty stack raised nothing")
except IndexError as error:
    assert str(error) == "empty stack", f"pop raised IndexError({str(error)!r}), expected 'empty stack'"
assert hasattr(stack, "peek"), "there is no method peek"
stack.push(1); stack.push(2)
assert stack.peek() == 2 and stack.peek() == 2, "peek does not return the last item, or removes it"
assert hasattr(stack, "size"), "there is no method size"
assert stack.size() == 2, f"size() returned {stack.size()}, expected 2"
assert stack.pop() == 2 and stack.size() == 1, "pop does not remove the last item"
P
