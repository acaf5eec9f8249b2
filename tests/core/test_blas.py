"""core/blas.py: numpy's products take one thread while it runs a graph, and jax's factorisations as long as matrices are small."""

import threading

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import jtorch
from jtorch.core import blas, by_numpy
from jtorch.core.device import Device


def threads(package="numpy"):
    return [
        one["num_threads"]
        for one in threadpool_info()
        if f"{package}.libs" in one["filepath"] and one["internal_api"] == "openblas"
    ]


@pytest.fixture(autouse=True)
def two():
    if not threads():
        pytest.skip("numpy multiplies with another library than OpenBLAS")
    with threadpool_limits(2):
        yield


def test_within_and_after():
    with blas.one_thread():
        assert threads() == [1]
        with blas.one_thread():
            assert threads() == [1]
        assert threads() == [1]
    assert threads() == [2]


def test_an_error_within_restores_the_number():
    with pytest.raises(ZeroDivisionError), blas.one_thread():
        1 / 0  # noqa: B018
    assert threads() == [2]


def test_two_threads_of_which_the_first_leaves_first():
    inside, leave = threading.Event(), threading.Event()

    def other():
        with blas.one_thread():
            inside.set()
            leave.wait(60)

    with blas.one_thread():
        thread = threading.Thread(target=other)
        thread.start()
        assert inside.wait(60)
    leave.set()
    thread.join()
    assert threads() == [2]


def test_a_graph_that_numpy_runs():
    seen = []

    def walk(call):
        seen.extend(threads())
        return []

    by_numpy.run(walk, Device("cpu"))
    assert seen == [1] and threads() == [2]


@pytest.fixture
def untold(monkeypatch):
    """As in a process that has factorised nothing."""
    scipy = pytest.importorskip("scipy.linalg")
    monkeypatch.setattr(blas._Lapack, "before", None)
    monkeypatch.setattr(blas._Lapack, "large", False)
    with threadpool_limits(2):
        if threads("scipy") != [2]:
            pytest.skip("scipy factorises with another library than OpenBLAS")
        yield scipy


def test_small_matrices_are_factorised_by_one_thread(untold):
    jtorch.linalg.eigh(jtorch.eye(7))
    assert threads("scipy") == [1] and threads() == [2]
    blas.lapack_for(blas.ROWS)
    assert threads("scipy") == [1]


def test_a_large_matrix_gets_the_threads_back_for_good(untold):
    blas.lapack_for(8)
    blas.lapack_for(blas.ROWS + 1)
    assert threads("scipy") == [2]
    blas.lapack_for(8)
    assert threads("scipy") == [2]


def test_a_large_matrix_first(untold):
    blas.lapack_for(blas.ROWS + 1)
    blas.lapack_for(8)
    assert threads("scipy") == [2]
