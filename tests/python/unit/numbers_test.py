#!/usr/bin/env python3
"""The numbers of a session: what is acknowledged, and what can be resumed."""

import threading
import unittest

import kilokv
from kilokv._core.numbers import RESUME_WINDOW, Numbers


class NumbersTest(unittest.TestCase):
    def test_numbers_are_acknowledged_in_their_order(self):
        numbers = Numbers()
        first, second, third = numbers.take(), numbers.take(), numbers.take()
        self.assertEqual((first, second, third), (1, 2, 3))
        numbers.ended(second, 1, False)
        self.assertEqual(numbers.acknowledged_through, 0)
        numbers.ended(first, 1, False)
        self.assertEqual(numbers.acknowledged_through, 2)
        numbers.ended(third, 1, False)
        self.assertEqual(numbers.acknowledged_through, 3)

    def test_a_number_that_was_given_up_can_be_resumed(self):
        numbers = Numbers()
        number = numbers.take()
        numbers.ended(number, 3, True)
        later = numbers.take()
        numbers.ended(later, 1, False)
        self.assertEqual(numbers.acknowledged_through, 0)
        self.assertEqual(numbers.take_again(number), 3)
        with self.assertRaises(kilokv.FailedPreconditionError):
            numbers.take_again(number)  # it is in flight
        numbers.ended(number, 4, False)
        self.assertEqual(numbers.acknowledged_through, 2)
        for ended in (number, later, 9):
            with self.assertRaises(kilokv.FailedPreconditionError):
                numbers.take_again(ended)

    def test_a_number_stays_open_for_so_many_requests_only(self):
        numbers = Numbers()
        numbers.ended(numbers.take(), 1, True)
        for _ in range(RESUME_WINDOW - 1):
            numbers.ended(numbers.take(), 1, False)
        self.assertEqual(numbers.acknowledged_through, 0)
        for _ in range(2):
            numbers.ended(numbers.take(), 1, False)
        self.assertEqual(numbers.acknowledged_through, RESUME_WINDOW + 2)

    def test_the_numbers_of_an_earlier_holder_stay_open(self):
        numbers = Numbers(acknowledged_through=2, inherited_through=10)
        self.assertEqual(numbers.take(), 11)
        numbers.ended(11, 1, False)
        self.assertEqual(numbers.acknowledged_through, 2)
        self.assertEqual(numbers.take_again(5), 0)
        numbers.acknowledge_through(8)
        self.assertEqual(numbers.acknowledged_through, 4)  # number 5 is in flight
        numbers.ended(5, 1, False)
        numbers.acknowledge_through(99)
        self.assertEqual(numbers.acknowledged_through, 11)

    def test_the_numbers_of_an_earlier_holder_end_after_so_many_requests(self):
        numbers = Numbers(inherited_through=3)
        for _ in range(RESUME_WINDOW + 1):
            numbers.ended(numbers.take(), 1, False)
        self.assertEqual(numbers.acknowledged_through, 3 + RESUME_WINDOW + 1)

    def test_threads_never_share_a_number(self):
        numbers, taken = Numbers(), []

        def work():
            for _ in range(2000):
                number = numbers.take()
                taken.append(number)
                numbers.ended(number, 1, False)

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(taken), list(range(1, 16_001)))
        self.assertEqual(numbers.acknowledged_through, 16_000)


if __name__ == "__main__":
    unittest.main()
