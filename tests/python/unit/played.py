"""Plays the steps of a call without a server: a test gives the answers."""

from kilokv import errors
from kilokv._core.steps import Call, Pause


class Played:
    """What the steps of a call did: the calls, the pauses in seconds, and what was returned."""

    def __init__(self, steps, answers):
        """`answers`: for each call a message, an error, or a list of messages for a stream; in a list, the last element
        may be an error."""
        self.calls, self.pauses, self.returned = [], [], None
        answers = iter(answers)
        try:
            step = next(steps)
            while True:
                if isinstance(step, Pause):
                    self.pauses.append(step.seconds)
                    step = steps.send(None)
                    continue
                assert isinstance(step, Call)
                self.calls.append(step)
                step = self._answer(steps, step, next(answers))
        except StopIteration as end:
            self.returned = end.value
        assert next(answers, None) is None, "not all answers were asked for"

    @staticmethod
    def _answer(steps, call, answer):
        for message in answer if isinstance(answer, list) else ():
            if isinstance(message, errors.Error):
                return steps.throw(message)
            call.take(message)
        if isinstance(answer, errors.Error):
            return steps.throw(answer)
        return steps.send(None if isinstance(answer, list) else answer)

    @property
    def methods(self):
        return [call.method for call in self.calls]
