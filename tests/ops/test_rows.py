"""The properties that every op must have, written once: its row says only what is special."""

import copy
import sys

import jax
import pytest

import jtorch
from jtorch import dispatch
from jtorch.ops.backend import on_cpu
from tests import oracle
from tests.memory import crowded, forget_programs
from tests.ops.rows import T, all_rows

pytestmark = pytest.mark.filterwarnings("ignore")

torch = oracle.torch
LOOK = 24  # ops after which it is looked whether compiled programs fill the process


class Case:
    """One row with one of its OpInfos."""

    def __init__(self, row, info):
        self.row = row
        self.info = info
        self.name = info.full_name
        self._made = {}

    @property
    def fn(self):
        if "fn" not in self._made:
            self._made["fn"] = oracle.counterpart(self.info.op, self.info.name.removeprefix("torch."))
        return self._made["fn"]

    def samples(self, dtype, cap, grad=False):
        key = dtype, cap, grad
        if key not in self._made:
            self._made[key] = oracle.samples(self.info, dtype, cap, grad=grad)
        return self._made[key]

    def first(self):
        """A sample with something in it, of the first dtype that has one."""
        for dtype in ("float32", "int64", "bool", "complex64"):
            for cap in (1, 3):
                for s in self.samples(dtype, cap):
                    if not isinstance(s.input, torch.Tensor) or s.input.numel():
                        return s
        return None

    def least(self, dtype):
        rtol, atol = oracle.overrides(self.info, dtype)
        more = self.row.tol.get(dtype, (0.0, 0.0))
        return max(rtol, more[0]), max(atol, more[1])


def _cases():
    infos = {}
    for info in oracle.opinfos().values():
        infos.setdefault(info.name, []).append(info)
    for rows in all_rows().values():
        for r in rows:
            found = [oracle.Given(r.name, r.samples, T)] if r.samples else infos.get(r.name, [])
            yield from (Case(r, info) for info in found)


CASES = list(_cases())


def of(cases):
    return pytest.mark.parametrize("case", cases, ids=lambda case: case.name)


every = of(CASES)
_seen = []


@pytest.fixture(autouse=True)
def _few_programs(case):
    if case not in _seen[-1:]:
        for before in _seen[-1:]:
            before._made.clear()
        if len(_seen) >= LOOK:
            _seen.clear()
            if crowded():
                forget_programs()
        _seen.append(case)
    yield
    jtorch.synchronize()


def unless_skipped(case, what):
    if what in case.row.skip:
        pytest.skip(case.row.why)
    if case.row.random and what in ("grad", "gradgrad", "modes", "traced"):
        pytest.skip("results are random")


def fresh(arguments):
    """The sample's arguments once more, for an op that may write to them."""
    try:
        return copy.deepcopy(arguments)
    except Exception:
        return arguments


def arguments(sample):
    return (sample.input, *sample.args), sample.kwargs


def in_torch(case, sample, fn=None, **more):
    args, kwargs = fresh(arguments(sample))
    torch.manual_seed(0)
    outcome = oracle.run(fn or case.info.op, *args, **kwargs, **more)
    outcome.inputs = oracle.tensors((args, kwargs), torch.Tensor)
    return outcome


def in_jtorch(case, sample, fn=None, **more):
    args, kwargs = oracle.from_torch(arguments(sample))
    jtorch.manual_seed(0)
    outcome = oracle.run(fn or case.fn, *args, **kwargs, **more)
    outcome.inputs = oracle.tensors((args, kwargs), jtorch.Tensor)
    if isinstance(outcome.error, oracle.Missing):
        raise outcome.error
    return outcome


def same(case, sample, expected, got, dtype="float32"):
    """Results and inputs afterwards agree, as far as they are defined."""
    if expected.error is not None or got.error is not None:
        return oracle.same_error(expected.error, got.error)
    want, have = expected.value, oracle.to_torch(got.value)
    if case.row.only is not None:
        oracle.same_kind(want, have)
        plain = oracle.tree_map(lambda t: t.detach(), want)
        want, have = case.row.only(sample, plain), case.row.only(sample, have)
        if want is None or have is None:
            return
    oracle.compare(want, have, least=case.least(dtype))
    oracle.compare(expected.inputs, oracle.to_torch(got.inputs), "inputs afterwards", least=case.least(dtype))


def described(sample):
    return sample.summary() if hasattr(sample, "summary") else str(sample)


def each(samples, check):
    """Check all samples; what fails first is raised, with its sample."""
    for s in samples:
        try:
            check(s)
        except Exception as e:
            e.add_note(f"sample: {described(s)[:400]}")
            raise


@every
def test_value(case):
    """Values and dtypes; float32 and int64."""
    unless_skipped(case, "value")
    plan = [(d, s) for d, cap in (("float32", 1), ("int64", 1)) for s in case.samples(d, cap)]
    plan = plan or [(d, s) for d in ("bool", "complex64") for s in case.samples(d, 2)]
    dtypes = {id(s): d for d, s in plan}
    each([s for _, s in plan], lambda s: same(case, s, in_torch(case, s), in_jtorch(case, s), dtypes[id(s)]))


@every
def test_layout(case):
    """Strides of results, from contiguous and from strided inputs."""
    unless_skipped(case, "layout")
    first = case.first()
    if first is None:
        pytest.skip("no sample with elements")

    def check(s):
        expected, got = in_torch(case, s), in_jtorch(case, s)
        same(case, s, expected, got)
        want, have = oracle.strides(expected.value, torch.Tensor), oracle.strides(got.value, jtorch.Tensor)
        if want != have:
            raise oracle.Mismatch(f"strides {want} expected, got {have}")

    each([first, *oracle.strided(first)], check)


def problem(case, sample, side):
    """The sample's differentiable leaves, and the function from nothing to its differentiable results."""
    module, tensor = (torch, torch.Tensor) if side == "torch" else (jtorch, jtorch.Tensor)
    args, kwargs = arguments(sample)
    wrapper, process, fn = case.info.gradcheck_wrapper, sample.output_process_fn_grad, case.info.op
    if oracle.is_masked(case.info):
        wrapper = oracle.plain_wrapper
    if side != "torch":
        args, kwargs = oracle.from_torch((args, kwargs))
        wrapper, process, fn = oracle.counterpart(wrapper), oracle.counterpart(process), case.fn
    else:
        args, kwargs = oracle.as_leaves((args, kwargs))
    leaves = list({id(t): t for t in oracle.tensors((args, kwargs), tensor) if t.requires_grad}.values())
    module.manual_seed(0)
    out = oracle.tensors(process(wrapper(fn, *args, **kwargs)), tensor)
    return leaves, [t for t in out if t.requires_grad]


def gradients(case, sample, side, order):
    """Gradients for fixed cotangents, with the results; of the second order those of the first ones, by inputs and cotangents."""
    module = torch if side == "torch" else jtorch
    leaves, out = problem(case, sample, side)
    if not out or not leaves:
        return None
    weights = [oracle.cotangent(t, i, module) for i, t in enumerate(out)]
    if oracle.is_masked(case.info):
        mask = oracle.output_mask(case.info, sample)
        weights = [w * (mask if side == "torch" else oracle.from_torch(mask)) for w in weights]
    if order == 2:
        weights = [w.detach().requires_grad_() for w in weights]
    found = module.autograd.grad(out, leaves, weights, allow_unused=True, create_graph=order == 2)
    results = [t.detach() for t in out] if order == 1 else []
    if order == 2:
        again = [g for g in found if g is not None and g.requires_grad]
        if not again:
            return None
        leaves = leaves + weights
        weights = [oracle.cotangent(t, i + 9, module) for i, t in enumerate(again)]
        found = module.autograd.grad(again, leaves, weights, allow_unused=True)
    return results + [module.zeros_like(t) if g is None else g.detach() for g, t in zip(found, leaves)]


def determined(case, sample):
    """Whether the sample's results are defined at all: those of dropout are not."""
    if case.row.only is None:
        return True
    plain = oracle.tree_map(lambda t: t.detach(), in_torch(case, sample).value)
    return case.row.only(sample, plain) is not None


def check_gradients(case, order, slack, matters=lambda: True):
    """matters: asked before anything is computed, whether what has been recorded is worth it."""
    dtype = "float64" if case.samples("float64", 1, grad=True) else "complex128"
    chosen = case.samples(dtype, 1, grad=True)  # the same for both orders: the second needs the programs of the first
    if not chosen:
        pytest.skip("not differentiable")

    def check(s):
        if not determined(case, s):
            return
        try:
            expected = gradients(case, s, "torch", order)
        except (RuntimeError, NotImplementedError):
            return  # torch has no such derivative for this sample
        if expected is not None:
            got = gradients(case, s, "jtorch", order)
            if got is None:
                raise oracle.Mismatch("torch has a gradient here, jtorch none")
            if matters():
                oracle.compare(expected, oracle.to_torch(got), "gradient", least=case.least(dtype), slack=slack)

    each(chosen, check)


@of([case for case in CASES if case.info.supports_autograd])
def test_grad(case):
    unless_skipped(case, "grad")
    check_gradients(case, 1, 10)


@of([case for case in CASES if case.info.supports_autograd and case.info.supports_gradgrad])
def test_gradgrad(case):
    unless_skipped(case, "gradgrad")
    check_gradients(case, 2, 100)


@of([case for case in CASES if case.info.inplace_variant])
def test_inplace(case):
    """`x.op_()` writes what `op(x)` returns, into x itself."""
    unless_skipped(case, "inplace")
    variant = case.info.inplace_variant
    first = case.first()
    if first is None or not isinstance(first.input, torch.Tensor):
        pytest.skip("no in-place form")
    expected = in_torch(case, first, variant)
    got = in_jtorch(case, first, oracle.counterpart(variant))
    same(case, first, expected, got)
    if expected.error is None and (expected.value is expected.inputs[0]) != (got.value is got.inputs[0]):
        raise oracle.Mismatch("the result is not the input itself")


@of([case for case in CASES if case.info.supports_out])
def test_out(case):
    """out= of the right shape, and empty, is written, resized and returned."""
    unless_skipped(case, "out")
    first = case.first()
    if first is None:
        pytest.skip("no out=")
    plain = in_torch(case, first)
    like = oracle.tensors(plain.value, torch.Tensor)
    if plain.error is not None or not like:
        pytest.skip("no out= for this sample")
    for make in (oracle.like_filled, oracle.like_empty):
        outs = tuple(make(t) for t in like)
        mine = oracle.from_torch(outs)
        expected = in_torch(case, first, out=outs if len(outs) > 1 else outs[0])
        got = in_jtorch(case, first, out=mine if len(mine) > 1 else mine[0])
        same(case, first, expected, got)
        if expected.error is None:
            returned = oracle.tensors(got.value, jtorch.Tensor)
            assert [any(r is o for o in mine) for r in returned] == [True] * len(returned), "out= is not returned"


@every
def test_modes(case):
    """Eager, recorded, and recorded a third time (when the graph runs as one program): the same results."""
    unless_skipped(case, "modes")
    first = case.first()
    if first is None:
        pytest.skip("no sample with elements")
    with jtorch.execution_mode("eager"):
        eager = in_jtorch(case, first)
        eager.value = oracle.to_torch(eager.value)
        eager.inputs = oracle.to_torch(eager.inputs)
    for _ in range(3):
        auto = in_jtorch(case, first)
        if eager.error is not None or auto.error is not None:
            oracle.same_error(eager.error, auto.error)
            return
        same(case, first, eager, auto)


@pytest.fixture
def elsewhere(monkeypatch):
    """Kernels have the forms of other backends than the CPU; gives the list of those that have been asked for."""
    asked = []
    for module in [m for name, m in sys.modules.items() if name.startswith("jtorch.")]:
        if vars(module).get("on_cpu") is on_cpu:
            monkeypatch.setattr(module, "on_cpu", lambda: asked.append(True))
    dispatch.forget_plans()
    yield asked
    dispatch.forget_plans()


@of([case for case in CASES if case.info.supports_autograd])
def test_grad_elsewhere(case, elsewhere):
    """Where no kernel has another form, which is known once its results have been recorded, they are those of `test_grad`."""
    unless_skipped(case, "grad")
    check_gradients(case, 1, 10, matters=lambda: elsewhere)


@every
def test_traced(case, elsewhere):
    """Inside jax.jit an op is the same function, as accelerators have it."""
    unless_skipped(case, "traced")
    first = case.first()
    expected = in_torch(case, first) if first is not None else None
    if expected is None or expected.error is not None or not expected.inputs:
        pytest.skip("no sample with tensors")
    args, kwargs = oracle.from_torch(arguments(first))
    leaves, rebuild = jax.tree.flatten((args, kwargs), is_leaf=lambda x: isinstance(x, jtorch.Tensor))
    places = [i for i, x in enumerate(leaves) if isinstance(x, jtorch.Tensor)]

    def program(given):
        mine = list(leaves)
        for i, t in zip(places, given):
            mine[i] = t
        a, kw = jax.tree.unflatten(rebuild, mine)
        return case.fn(*a, **kw)

    got = oracle.Outcome(jax.jit(program)([leaves[i] for i in places]))
    expected.inputs = []
    same(case, first, expected, got)


@of([case for case in CASES if case.info.error_inputs_func])
def test_errors(case):
    """Bad inputs are refused with torch's exception and its first line, or what PyTorch's tests look for."""
    unless_skipped(case, "errors")
    refused = oracle.error_samples(case.info, 6)
    if not refused:
        pytest.skip("PyTorch has no bad inputs for this op")
    regex = {id(s): r for s, r in refused}

    def check(s):
        expected = in_torch(case, s)
        if expected.error is not None:
            oracle.same_error(expected.error, in_jtorch(case, s).error, regex[id(s)])

    each([s for s, _ in refused], check)
