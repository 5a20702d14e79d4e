"""What a transaction of unknown fate may have reached, and what may follow from it."""

from history import to_bound, to_key


class Taint:
    """Keys, and ranges (from, to), whose contents depend on whether the unknown transactions ran."""

    def __init__(self, unknown):
        self._reached = set()
        for line in unknown:
            self._reached.update(footprint(line, writes_only=True))

    def reaches(self, items):
        return bool(self._reached) and any(overlaps(item, reached) for item in items for reached in self._reached)

    def spread(self, line):
        """The footprint of the transaction; all that it writes is reached when anything that it touches is."""
        if not self._reached:
            return ()
        items = footprint(line)
        if self.reaches(items):
            self._reached.update(footprint(line, writes_only=True))
        return items


def footprint(line, writes_only=False):
    reads = () if writes_only else line["guards"]
    operations = [op for op in line["then"] + line["else"] if not (writes_only and op["op"] in ("get", "range_get"))]
    items = set()
    for part in [*reads, *operations]:
        if "from" in part:
            items.add((to_bound(part["from"]), to_bound(part["to"])))
        elif part.get("key") is not None:  # a guard of time may have none
            items.add(to_key(part["key"]))
        if part.get("other") is not None:
            items.add(to_key(part["other"]))
    return items


def overlaps(a, b):
    """Whether two keys or ranges have a key in common."""
    (a_from, a_to), (b_from, b_to) = (item if type(item) is tuple else (item, item + "\0") for item in (a, b))
    return (not b_to or a_from < b_to) and (not a_to or b_from < a_to)
