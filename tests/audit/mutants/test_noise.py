"""Mutants of the noise do what they say, and no more."""

import numpy as np
import pytest
from mutants import MUTANTS

from sklearn_dp._privacy import _session
from sklearn_dp._privacy._noise import NoiseSource

pytestmark = pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning")
BUGS = {bug.name: bug for bug in MUTANTS}


def drawn(name, law="rounded_gaussian", scale=1e6):
    with BUGS[name].planted() as reached:
        found = getattr(NoiseSource(5), law)(scale, 1000)
    assert reached
    return found


def test_halved_noise_is_that_of_half_the_scale():
    half = NoiseSource(5).rounded_gaussian(5e5, 1000)
    assert np.array_equal(drawn("noise halved"), half)
    half = NoiseSource(5).rounded_laplace(5e5, 1000)
    assert np.array_equal(drawn("Laplace noise halved", "rounded_laplace"), half)


def test_other_laws_stay():
    untouched = NoiseSource(5).rounded_laplace(1e6, 1000)
    with BUGS["noise halved"].planted():
        assert np.array_equal(NoiseSource(5).rounded_laplace(1e6, 1000), untouched)


def test_noise_that_is_none_has_one_sign_or_comes_twice():
    correct = NoiseSource(5).rounded_gaussian(1e6, 1000)
    assert not drawn("noise forgotten").any()
    assert np.array_equal(drawn("noise of one sign"), np.abs(correct))
    with BUGS["same noise twice"].planted():
        first, second = (NoiseSource(seed).rounded_gaussian(1e6, 5) for seed in (1, 2))
    assert np.array_equal(first, second)


def test_a_choice_that_is_too_sharp_has_twice_the_rate():
    def choices(rate):
        source = NoiseSource(5)
        return [int(source.exponential_choice(np.array([0, 1, 1]), rate)) for _ in range(20)]

    sharp, correct = choices(2.0), choices(1.0)
    assert sharp != correct
    with BUGS["selection too sharp"].planted():
        assert choices(1.0) == sharp


@pytest.mark.parametrize(
    "name", ["noise seeded without a seed", "noise from numpy's global generator"]
)
def test_noise_without_a_seed_comes_from_somewhere_else(name):
    def noise():
        np.random.seed(3)  # noqa: NPY002
        source = NoiseSource(_session.seed_of(None))
        return source.rounded_gaussian(1e9, 4).tolist()

    state = np.random.get_state()  # noqa: NPY002
    try:
        assert noise() != noise()
        with BUGS[name].planted():
            assert noise() == noise()
    finally:
        np.random.set_state(state)  # noqa: NPY002


def test_what_depends_on_n_jobs_and_what_hides_a_seed(make_toy, points):
    fits = [make_toy(random_state=0, n_jobs=jobs) for jobs in (1, 2)]
    with BUGS["noise seeded by n_jobs"].planted():
        means = [fit.fit(points).mean_.tolist() for fit in fits]
    assert means[0] != means[1] and fits[0].random_state == 0
    with BUGS["seed kept quiet"].planted():
        assert make_toy(random_state=0).fit(points).privacy_report_.noise == "system"
    assert make_toy(random_state=0).fit(points).privacy_report_.noise == "seeded"
