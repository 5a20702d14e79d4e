"""Compares answers with what a script expects. README.md has the rules."""

MISSING = object()


class Mismatch(Exception):
    """The answer is another one."""


def fill_in(form, kept):
    """A call or an expectation without its short forms, and with what was kept in the places of $use."""
    if isinstance(form, list):
        return [fill_in(value, kept) for value in form]
    if not isinstance(form, dict):
        return form
    if set(form) == {"$use"}:
        return kept[form["$use"]]
    if set(form) == {"$repeat", "times"}:
        return form["$repeat"] * form["times"]
    if set(form) == {"$list", "times"}:
        return [_with_index(fill_in(form["$list"], kept), f"{index:05}") for index in range(form["times"])]
    return {name: fill_in(value, kept) for name, value in form.items()}


def _with_index(form, index):
    if isinstance(form, str):
        return form.replace("$i", index)
    if isinstance(form, list):
        return [_with_index(value, index) for value in form]
    if isinstance(form, dict):
        return {name: _with_index(value, index) for name, value in form.items()}
    return form


def match(expected, actual, kept, place="answer"):
    """Raises Mismatch, and says where. Adds to `kept` what the script wants to keep."""
    if isinstance(expected, dict):
        rule = next(iter(expected), "") if len(expected) == 1 else ""
        if rule.startswith("$"):
            _match_rule(rule, expected[rule], actual, kept, place)
            return
        if not isinstance(actual, dict):
            raise Mismatch(f"{place}: an object is expected, not {show(actual)}")
        for name, value in expected.items():
            match(value, actual.get(name, MISSING), kept, f"{place}.{name}")
    elif isinstance(expected, list):
        if not isinstance(actual, list) or len(actual) != len(expected):
            raise Mismatch(f"{place}: a list of {len(expected)} is expected, not {show(actual)}")
        for index, value in enumerate(expected):
            match(value, actual[index], kept, f"{place}[{index}]")
    elif type(expected) is not type(actual) or expected != actual:
        raise Mismatch(f"{place}: {show(expected)} is expected, not {show(actual)}")


def _match_rule(rule, argument, actual, kept, place):
    if actual is MISSING:
        raise Mismatch(f"{place}: it is missing")
    if rule == "$save":
        kept[argument] = actual
    elif rule == "$use":
        match(kept[argument], actual, kept, place)
    elif rule == "$above":
        if not int(actual) > int(kept[argument]):
            raise Mismatch(f"{place}: {show(actual)} is not above {show(kept[argument])}")
    elif rule == "$has":
        if not isinstance(actual, str) or argument not in actual:
            raise Mismatch(f"{place}: {show(actual)} does not contain {show(argument)}")
    elif rule == "$any":
        if not any(_matches(choice, actual, kept) for choice in argument):
            raise Mismatch(f"{place}: {show(actual)} is none of {show(argument)}")
    elif rule == "$not":
        if _matches(argument, actual, kept):
            raise Mismatch(f"{place}: {show(actual)} is not expected")
    else:
        raise Mismatch(f"{place}: the script has an unknown rule {rule}")


def _matches(expected, actual, kept):
    try:
        match(expected, actual, kept)
    except Mismatch:
        return False
    return True


def show(value):
    if value is MISSING:
        return "nothing"
    text = repr(value)
    return text if len(text) <= 300 else text[:300] + "..."
