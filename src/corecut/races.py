"""Races: samples without replacement by mass, of blocks of points that may lie anywhere.

Point x arrives at a time E_x/mass_x, with E_x exponential and a function of (seed, number of the race, x) alone. The first ones
of all points are among the first ones of their blocks.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from corecut._typing import FloatArray, IntArray

# Points of a block whose first ones are found on their own.
_BLOCK = 65_536

Arrivals = tuple[FloatArray, IntArray]


def first_of_race(mass: FloatArray, count: int, seed: int, number: int, *, begin: int = 0) -> Arrivals:
    """Return the times and numbers of the `count` points that arrive first, in their order.

    Points are numbered from `begin` on; ties are won by the lower one.
    """
    first: Arrivals = np.empty(0), np.empty(0, np.int64)
    for low in range(0, mass.size, _BLOCK):
        part = mass[low : low + _BLOCK]
        points = np.flatnonzero(part > 0) + (begin + low)
        times = -np.log(_uniform(points, seed, number)) / part[points - (begin + low)]
        first = first_of_all([first, (times, points)], count)
    return first


def first_of_all(parts: list[Arrivals], count: int) -> Arrivals:
    """Return the first ones of several blocks' first ones."""
    times, points = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    first = np.lexsort((points, times))[:count]
    return times[first], points[first]


def _uniform(points: IntArray, seed: int, number: int) -> FloatArray:
    """Return a number in (0, 1] for every point, by SplitMix64 of (seed, number, point)."""

    def mixed(z: Any) -> Any:
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))

    key = mixed(np.array([seed, number], np.uint64) + np.array([0x9E3779B97F4A7C15, 0xD1342543DE82EF95], np.uint64))
    bits = mixed((key[0] ^ key[1] << np.uint64(1)) + np.uint64(0x9E3779B97F4A7C15) * (points.astype(np.uint64) + np.uint64(1)))
    uniform: FloatArray = ((bits >> np.uint64(11)).astype(np.float64) + 1.0) * 2.0**-53
    return uniform
