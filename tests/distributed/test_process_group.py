"""distributed/process_group.py: collectives on arrays, among threads."""

import concurrent.futures
import datetime

import ml_dtypes
import numpy as np
import pytest

from jtorch.distributed.process_group import ProcessGroup, ReduceOp, Work
from tests.distributed.test_links import joined

SIZE = 3


@pytest.fixture(scope="module")
def groups():
    timeout = datetime.timedelta(seconds=20)
    return [ProcessGroup("gloo", range(SIZE), links, 0, timeout) for links in joined(SIZE)]


def together(groups, collective):
    """What collective(group) gives in each process."""
    with concurrent.futures.ThreadPoolExecutor(SIZE) as pool:
        return list(pool.map(collective, groups))


REDUCED = [
    (ReduceOp.SUM, np.float32, (5,)), (ReduceOp.SUM, np.float32, (200_001,)), (ReduceOp.SUM, np.float64, (7, 30_000)),
    (ReduceOp.AVG, np.float32, (4, 2)), (ReduceOp.PRODUCT, np.int64, (3,)), (ReduceOp.MIN, ml_dtypes.bfloat16, (6,)),
    (ReduceOp.MAX, np.float16, (40_000,)), (ReduceOp.BXOR, np.int32, (2, 2)), (ReduceOp.SUM, np.complex64, ()), (ReduceOp.SUM, np.float32, (0, 3)),
]  # fmt: skip


@pytest.mark.parametrize("op, dtype, shape", REDUCED)
def test_reduced(groups, op, dtype, shape):
    rng = np.random.default_rng(0)
    arrays = [np.asarray(rng.integers(0, 9, shape)).astype(dtype) for _ in range(SIZE)]
    found = together(groups, lambda g: g.reduced(arrays[g.rank()], op))
    reduce = {
        ReduceOp.SUM: np.add, ReduceOp.AVG: np.add, ReduceOp.PRODUCT: np.multiply, ReduceOp.MIN: np.minimum, ReduceOp.MAX: np.maximum,
        ReduceOp.BXOR: np.bitwise_xor,
    }[op]  # fmt: skip
    expected = reduce(reduce(arrays[0], arrays[1]), arrays[2])
    if op is ReduceOp.AVG:
        expected = (expected / SIZE).astype(dtype)
    for each in found:
        assert each.dtype == expected.dtype and np.array_equal(each, expected)


def test_all_have_the_same_bits(groups):
    rng = np.random.default_rng(1)
    arrays = [rng.standard_normal(100_003).astype("f4") for _ in range(SIZE)]
    found = together(groups, lambda g: g.reduced(arrays[g.rank()], ReduceOp.SUM))
    assert all(np.array_equal(each, found[0]) for each in found)
    np.testing.assert_allclose(found[0], sum(arrays), rtol=1e-5, atol=1e-5)


def test_jobs_run_in_the_order_of_their_start(groups):
    def two(g):
        jobs = [g.start(g.everywhere, np.array([k], np.uint8)) for k in range(5)]
        return [[int(m[0]) for m in job.result()] for job in jobs]

    assert together(groups, two) == [[[k] * SIZE for k in range(5)]] * SIZE


def test_other_sizes_are_refused(groups):
    def sizes(g):
        try:
            g.reduced(np.zeros(g.rank() + 1), ReduceOp.SUM)
        except RuntimeError as error:
            return str(error)

    assert set(together(groups, sizes)) == {"the processes reduce tensors of other sizes: [1, 2, 3] elements"}


def test_work_writes_once_and_says_what_failed():
    group, written = ProcessGroup(), []
    work = Work(group.start(lambda: 3), written.append, ["t"])
    assert work.is_completed() and work.wait() and work.result() == ["t"] and written == [3]
    assert work.get_future().wait() == ["t"]

    def fails():
        raise RuntimeError("lost")

    work = Work(group.start(fails))
    assert not work.is_success()
    for ask in (work.wait, work.result, work.is_completed, lambda: work.get_future().wait()):
        with pytest.raises(RuntimeError, match="lost"):
            ask()
