"""numpy's spellings of arguments: where PyTorch takes axis=, keepdims=, x=, a=, x1= or x2=, jtorch does. The table is generated from
PyTorch's samples; tensors are on the meta device, since it is only asked whether a call is taken."""

import itertools

import pytest

import jtorch
from jtorch.ops import registry
from tests.oracle import from_torch, op_db, torch

SPELLINGS = {"dim": "axis", "keepdim": "keepdims", "dim0": "axis0", "dim1": "axis1", "input": "x a x1", "other": "x2"}
DIMS = {"dim", "keepdim", "dim0", "dim1"}
EXTRA = {"dim": 0, "keepdim": True}

RECORDS = {
    target: record
    for table in (registry.OPS, registry.VIEWS, registry.COMPOSITES)
    for record in table.values()
    for target in record.targets
    if DIMS & {p.name for p in record.params}
}


def taken(fn, args, named):
    """None, or the words with which arguments are refused."""
    try:
        fn(*args, **named)
    except TypeError as error:
        return str(error)
    except Exception:
        pass  # the values do not fit, or need data: not what is asked
    return None


def works(fn, args, named):
    try:
        fn(*args, **named)
    except Exception:
        return False
    return True


def on_meta(x):
    if isinstance(x, jtorch.Tensor):
        return x.to("meta")
    if isinstance(x, (list, tuple)):
        return type(x)(map(on_meta, x))
    return {k: on_meta(v) for k, v in x.items()} if isinstance(x, dict) else x


def calls():
    """(name, arguments by position, by name) of what PyTorch takes in its own spelling."""
    seen = set()
    for info in op_db:
        for target in (info.name if "." in info.name else f"torch.{info.name}", f"Tensor.{info.name}"):
            record = RECORDS.get(target)
            if record is None or target in seen:
                continue
            seen.add(target)
            names = [p.name for p in record.params]
            for sample in itertools.islice(info.sample_inputs("cpu", torch.float32), 3):
                args = (sample.input, *sample.args)
                if len(args) > len(names) or not isinstance(sample.input, torch.Tensor):
                    continue
                named = {**dict(zip(names, args)), **sample.kwargs}
                named |= {k: v for k, v in EXTRA.items() if k in names and k not in named and len(sample.input.shape)}
                given = (named.pop(names[0]),) if target.startswith("Tensor.") else ()
                yield target, given, named


@pytest.mark.filterwarnings("ignore")
def test_every_spelling_that_pytorch_takes():
    wrong, asked = {}, set()
    for target, given, named in calls():
        path = target.removeprefix("torch.").split(".")
        its, mine = torch, jtorch
        for part in path:
            its, mine = getattr(its, part, None), getattr(mine, part, None)
        if its is None or not works(its, given, named):
            continue
        for name, spelling in ((n, s) for n in named for s in SPELLINGS.get(n, "").split()):
            other = {(spelling if k == name else k): v for k, v in named.items()}
            if (target, spelling) in asked or not works(its, given, other):
                continue
            asked.add((target, spelling))
            words = taken(mine, *map(on_meta, from_torch((given, other))))
            if words is not None:
                wrong[target, spelling] = words
    assert not wrong, wrong
    assert len(asked) > 200, "PyTorch was hardly asked"


def test_values_and_refusals():
    x = jtorch.arange(6.0).view(2, 3)
    assert jtorch.median(x, axis=1, keepdims=True).values.tolist() == [[1], [4]]
    assert jtorch.sum(a=x, axis=0).tolist() == [3, 5, 7] and x.diff(axis=0).tolist() == [[3, 3, 3]]
    assert x.narrow(axis=1, start=1, length=1).tolist() == [[1], [4]]
    for call in (
        lambda: x.sum(a=x),
        lambda: jtorch.narrow(x),
        lambda: jtorch.narrow(x, axes=1),
        lambda: jtorch.sum(axis=0),
    ):
        with pytest.raises(TypeError):
            call()


# Calls by the names of PyTorch's parser, which are not those of its documentation.
NAMED = (
    "t.linalg.norm(x, keepdims=True)", "t.linalg.norm(input=x, ord=1, axis=0)", "t.linalg.vector_norm(x1=x, axis=1, keepdims=True)",
    "t.linalg.cholesky(input=s)", "t.linalg.cholesky_ex(a=s)[0]", "t.linalg.cond(input=s)", "t.linalg.eigh(x=s)[0]",
    "t.linalg.eigvalsh(input=s)", "t.linalg.eigvals(input=s).real", "t.linalg.ldl_factor(input=s)[0]", "t.linalg.matrix_exp(input=s)",
    "t.linalg.matrix_norm(input=s, keepdims=True)", "t.linalg.matrix_rank(input=s)", "t.linalg.pinv(input=s)", "t.det(input=s)",
    "t.linalg.lstsq(input=s, b=s)[0]", "t.inverse(x=s)", "t.slogdet(input=s)[1]", "t.matrix_exp(input=s)", "t.cholesky_inverse(input=s)",
    "t.cholesky_solve(input=s, input2=s)", "t.special.airy_ai(x=x)", "t.special.hermite_polynomial_h(x=x, n=2)",
    "x.reshape(shape=(3, 2))", "x.tile(dims=(2,))", "t.tile(x, dims=(2, 1))",
    "x.clone().resize_(size=(6,))", "x.sum_to_size(size=(1, 3))", "t.split(tensor=x, split_size_or_sections=1)", "t.scalar_tensor(s=2)",
    "x.clone().cumsum_(axis=0)", "x.clone().renorm_(p=2, axis=0, maxnorm=1)",
    "t.permute(x, 1, 0)", "t.permute(s[0], 0)", "t.permute(x, (1, 0))", "x.permute(1, 0)", "t.flip(x, 0, 1)", "t.flip(x, 0)", "t.tile(x, 2, 1)",
    "t.expand_copy(x, 2, 3)", "t.det()", "t.linalg.inv(input=s, x=s)", "t.linalg.norm(x, axes=1)",
)  # fmt: skip


@pytest.mark.parametrize("call", NAMED)
def test_names_of_the_parser(call):
    outcome = []
    for t in (torch, jtorch):
        scope = {"t": t, "x": t.arange(6.0).view(2, 3) + 1, "s": t.tensor([[2.0, 0.5], [0.5, 1.0]])}
        try:
            found = eval(call, scope)
            found = found if isinstance(found, tuple) else (found,)
            outcome.append([tuple(p.shape) for p in found] + [n for p in found for n in p.reshape(-1).tolist()])
        except TypeError as error:
            outcome.append(type(error))
    if isinstance(outcome[0], type) or isinstance(outcome[1], type):
        assert outcome[0] is outcome[1]
    else:
        shapes = len([x for x in outcome[0] if isinstance(x, tuple)])
        assert outcome[0][:shapes] == outcome[1][:shapes]
        assert outcome[1][shapes:] == pytest.approx(outcome[0][shapes:], rel=1e-4, abs=1e-5)
