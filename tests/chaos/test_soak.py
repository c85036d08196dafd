"""K13's word on what grows: said of what does, and of nothing else."""

import os

import pytest

from tests.chaos.soak import (
    CONNECTIONS,
    DESCRIPTORS,
    LAG,
    MEMORY,
    SAMPLES,
    Samples,
    descriptors,
    quarters,
    resident_mib,
)

MEASURES = [(MEMORY, 128.0), (DESCRIPTORS, 40.0), (CONNECTIONS, 20.0), (LAG, 3.0)]


def sampled(measure, values) -> Samples:
    samples = Samples()
    for value in values:
        samples.take(measure, 0, value)
    return samples


@pytest.mark.parametrize(("measure", "usual"), MEASURES)
def test_steady_growth_is_found(measure, usual):
    step = (usual * 0.3 + 3 * measure.slack) / SAMPLES
    grown = sampled(measure, [usual + step * number for number in range(SAMPLES)]).growing()
    assert len(grown) == 1
    assert measure.name in grown[0]


@pytest.mark.parametrize(("measure", "usual"), MEASURES)
def test_what_warms_up_and_jumps_for_a_moment_is_flat(measure, usual):
    values = [usual / 2] * 60 + [usual + number % 2 for number in range(180)]
    values[200] = values[100] = usual * 50
    assert sampled(measure, values).growing() == ()


def test_medians_of_quarters():
    assert quarters([1, 2, 30, 40, 5, 6, 7, 8]) == [1.5, 35, 5.5, 7.5]
    with pytest.raises(AssertionError):
        quarters([1, 2, 3])


def test_a_process_is_measured():
    before = descriptors(os.getpid())
    reading, writing = os.pipe()
    assert descriptors(os.getpid()) == before + 2
    os.close(reading)
    os.close(writing)
    memory = resident_mib(os.getpid())
    held = b"x" * (64 << 20)
    assert resident_mib(os.getpid()) > memory + 48
    assert len(held) == 64 << 20
