"""The page by which the referee lets a program on a GPU begin: start_page.h, which says why."""

from __future__ import annotations

import os

import tensors

_READY, _GO, _DONE, _NUM_CALLS, _ROOMS = range(5)  # words


class StartPage:
    """Over a descriptor, which it closes."""

    def __init__(self, descriptor: int) -> None:
        self._words = tensors.map_descriptor(descriptor).cast("I")

    def await_start(self, number: int) -> list[int]:
        """Returns when the run begins: the rooms of its calls."""
        words = self._words
        words[_READY] = number
        while words[_GO] != number:
            os.sched_yield()
        return words[_ROOMS : _ROOMS + words[_NUM_CALLS]].tolist()

    def tell_done(self, number: int) -> None:
        """Everything that the run's calls asked of the GPU is done."""
        self._words[_DONE] = number
