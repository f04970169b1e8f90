"""One random source in, seeds for the stages out."""

from __future__ import annotations

import numbers

import numpy as np

from corecut._typing import RandomState


def check_random_state(random_state: RandomState) -> None:
    """Refuse what is no source of random numbers, without drawing one."""
    if random_state is None or isinstance(random_state, np.random.Generator | np.random.RandomState):
        return
    if isinstance(random_state, bool) or not isinstance(random_state, numbers.Integral) or random_state < 0:
        raise ValueError(
            f"random_state must be None, a non-negative integer, a Generator or a RandomState, got {random_state!r}"
        )


def as_generator(random_state: RandomState) -> np.random.Generator:
    """Return a generator for scikit-learn's `random_state`: None, a seed, a `RandomState` or a `Generator`."""
    check_random_state(random_state)
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(0, 2**31, size=4, dtype=np.int64))
    return np.random.default_rng(random_state)


def draw_seed(generator: np.random.Generator) -> int:
    """Return a 63-bit seed for a native kernel."""
    return int(generator.integers(0, 2**63 - 1))
