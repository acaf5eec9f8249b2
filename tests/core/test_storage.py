"""Storages: aliasing, sharing memory with numpy both ways, versions, pickling, copying, DLPack."""

import copy
import io
import pickle

import jax
import numpy as np
import pytest

import jtorch
from jtorch import errors_storage
from tests.oracle import both


def test_aliases_have_one_address():
    def program(torch):
        x = torch.arange(12.0).view(3, 4)
        views = [
            x.t(),
            x[1:],
            x.view(-1),
            x.expand(2, 3, 4),
            x.detach(),
            x[:, 1],
            x.narrow(0, 1, 2),
            x.as_strided((2,), (1,), 5),
        ]
        base = x.data_ptr()
        return [
            [v.data_ptr() - base for v in views],
            [v.untyped_storage().data_ptr() == x.untyped_storage().data_ptr() for v in views],
            [v.storage_offset() for v in views],
            x.clone().data_ptr() == base,
            x.contiguous().data_ptr() == base,
            x.t().contiguous().untyped_storage().data_ptr() == x.untyped_storage().data_ptr(),
            x.untyped_storage().nbytes(), x.element_size(), len(x.untyped_storage()), torch.empty(0).data_ptr(),
        ]  # fmt: skip

    both(program)


def test_different_storages_have_different_addresses():
    kept = [jtorch.zeros(3) for _ in range(50)]
    assert len({t.data_ptr() for t in kept}) == 50


def test_a_write_is_seen_by_all_views():
    def program(torch):
        x = torch.zeros(3, 4)
        a, b, c = x[1], x.t(), x.view(2, 6)
        a.fill_(1)
        b[0] += 5
        c[1, 2:4] = 7
        x.view(-1)[::3] *= 2
        return x, a, b, c, x._version, a._version

    both(program)


def test_in_place_through_views_of_views():
    def program(torch):
        x = torch.arange(24.0).reshape(2, 3, 4)
        x.transpose(0, 2)[1:3].permute(1, 2, 0)[0].mul_(10)
        x[..., ::2].select(1, 1).zero_()
        x.diagonal(0, 1, 2).neg_()
        x.unfold(2, 2, 2)[0, 0].add_(100)
        return x

    both(program)


def test_numpy_shares_memory_both_ways():
    def program(torch):
        x = torch.zeros(4)
        a = x.numpy()
        a[1] = 5
        x[2] = 7
        x.add_(1)
        b = np.arange(4.0)
        y = torch.from_numpy(b)
        b[0] = 10
        y[3] = -1
        y.mul_(2)
        return x, a.tolist(), y, b.tolist()

    both(program)


def test_numpy_of_a_view_shares_with_the_base():
    def program(torch):
        x = torch.zeros(3, 4)
        col = x[:, 1].numpy()
        t = x.t().numpy()
        col[:] = [1, 2, 3]
        t[3, 0] = 9
        x[2, 2] = 8
        return x, col.tolist(), t.tolist(), t.strides, (x + 1), x.sum().item()

    both(program)


def test_from_numpy_keeps_strides():
    def program(torch):
        a = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)
        x = torch.from_numpy(a.transpose(2, 0, 1))
        y = torch.from_numpy(a[:, 1:, ::2])
        return x, y, x.stride(), y.stride(), x.is_contiguous()

    both(program)


def test_from_numpy_refuses():
    both(lambda torch: torch.from_numpy(np.arange(3)[::-1]))
    both(lambda torch: torch.from_numpy([1, 2]))
    both(lambda torch: torch.from_numpy(np.array(["a"])))


def test_numpy_refuses():
    both(lambda torch: torch.ones(2, requires_grad=True).numpy())
    both(lambda torch: torch.ones(2, requires_grad=True).numpy(force=True).tolist())


def test_the_array_protocol():
    def program(torch):
        x = torch.arange(6).view(2, 3)
        return [
            np.asarray(x).tolist(), str(np.asarray(x).dtype), np.array(x, dtype=np.float32).tolist(),
            float(np.sum(np.asarray(x.t()))), str(np.asarray(torch.tensor([True])).dtype), np.float64(2) * 3,
            np.add(np.ones(3), np.asarray(torch.ones(3))).tolist(),
        ]  # fmt: skip

    both(program)


def test_jax_takes_tensors():
    x = jtorch.arange(4.0)
    assert jax.numpy.sum(x.__jax_array__()) == 6
    doubled = jax.jit(lambda t: t * 2)(x)
    assert isinstance(doubled, jtorch.Tensor) and doubled.tolist() == [0.0, 2.0, 4.0, 6.0]
    leaves, tree = jax.tree.flatten({"a": x})
    assert len(leaves) == 1 and jax.tree.unflatten(tree, leaves)["a"].tolist() == x.tolist()


def test_dlpack():
    a = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    assert jtorch.from_dlpack(a).tolist() == a.tolist()
    x = jtorch.arange(6.0).view(2, 3)
    np.testing.assert_array_equal(np.from_dlpack(x), a)
    np.testing.assert_array_equal(np.asarray(jax.dlpack.from_dlpack(x)), a)
    assert jtorch.utils.dlpack.from_dlpack(x).tolist() == x.tolist()


def test_version_counters():
    def program(torch):
        x = torch.zeros(3)
        versions = [x._version]
        x.add_(1)
        versions.append(x._version)
        x[0] = 2
        versions.append(x._version)
        v = x[1:]
        v.zero_()
        versions += [x._version, v._version, x.detach()._version, x.clone()._version]
        with torch.no_grad():
            x.mul_(2)
        return versions + [x._version]

    both(program)


@pytest.mark.parametrize("protocol", [2, pickle.HIGHEST_PROTOCOL])
def test_pickle(protocol):
    def program(torch):
        x = torch.arange(12.0).view(3, 4)
        got = pickle.loads(
            pickle.dumps([x, x.t(), x[1], torch.tensor(3, dtype=torch.int8), torch.ones(2).bfloat16()], protocol)
        )
        leaf = pickle.loads(pickle.dumps(torch.ones(2, requires_grad=True), protocol))
        return got, leaf, leaf.is_leaf

    both(program)


def test_pickle_of_attributes():
    x = jtorch.nn.Parameter(jtorch.ones(2))
    y = pickle.loads(pickle.dumps(x))
    assert type(y) is jtorch.nn.Parameter and y.requires_grad and y.tolist() == [1.0, 1.0]


def test_deepcopy():
    def program(torch):
        x = torch.arange(6.0).view(2, 3)
        pair = copy.deepcopy({"x": x, "t": x.t(), "again": x})
        pair["x"].zero_()
        w = torch.ones(2, requires_grad=True)
        w.grad = torch.full((2,), 3.0)
        c = copy.deepcopy(w)
        return (
            x,
            pair["t"],
            pair["again"] is pair["x"],
            c,
            c.grad,
            c.grad is w.grad,
            copy.copy(x).data_ptr() == x.data_ptr(),
        )

    both(program)


def test_deepcopy_of_a_result_is_refused():
    both(lambda torch: copy.deepcopy(torch.ones(2, requires_grad=True) * 2))


def test_save_and_load():
    def program(torch):
        f = io.BytesIO()
        torch.save({"w": torch.arange(3.0), "n": 3, "l": [torch.ones(2).t()]}, f)
        f.seek(0)
        return torch.load(f)

    both(program)


def test_view_as_another_dtype():
    def program(torch):
        x = torch.arange(4, dtype=torch.float32).view(2, 2)
        bits = x.view(torch.int32)
        bits[0, 1] = 0x40400000
        return x, bits, x.view(torch.uint8).shape, x.view(torch.float64), x.view(torch.int16).stride()

    both(program)


def test_complex_views():
    def program(torch):
        z = torch.complex(torch.arange(3.0), torch.ones(3))
        z.real.mul_(10)
        torch.view_as_real(z)[:, 1] = 5
        return z, z.imag, z.real, z.real.stride()

    both(program)


def test_storage_objects():
    def program(torch):
        x = torch.tensor([[1, 2], [3, 4]])
        s = x.t().storage()
        return [
            str(s),
            len(s),
            s[2],
            list(s),
            s.size(),
            s.data_ptr() == x.storage().data_ptr(),
            x.untyped_storage().size(),
        ]

    both(program)


def test_set_data_and_resize():
    def program(torch):
        x = torch.zeros(2, 3)
        y = torch.arange(4.0)
        x.data = y
        y[0] = 9
        z = torch.arange(6.0)
        z.resize_(2, 2)
        return x, z, z.stride()

    both(program)


def test_shapes_that_keep_coming(monkeypatch):
    """Arrays become tensors by either way with the same values, and later writes to the array are not seen."""
    monkeypatch.setattr(jtorch.core.storage, "_OFTEN", 2)
    for k in range(5):
        array = np.full((3, 7), k, np.float32)
        t = jtorch.tensor(array)
        array[:] = -1
        assert t.tolist() == [[float(k)] * 7] * 3


@pytest.mark.parametrize("mode", ["auto", "eager"])
def test_what_does_not_fit_is_an_error(mode):
    """More than a process can address: jax would end it where the memory is asked for."""
    with jtorch.execution_mode(mode):
        column = jtorch.ones(1 << 23, 1)
        for read in (lambda x: x.numpy(), lambda x: x[0, 0].item()):
            with pytest.raises(jtorch.OutOfMemoryError, match=f"you tried to allocate {1 << 48} bytes"):
                read(column + jtorch.ones(1 << 23))
        assert column.sum().item() == 1 << 23


def test_what_a_tpu_cannot_compute_says_what_to_do():
    said = jax.errors.JaxRuntimeError(
        "UNIMPLEMENTED: Only F32 and C64 types are implemented in LuDecomposition\n  at ..."
    )
    error = errors_storage.from_xla(said, "tpu")
    assert type(error) is NotImplementedError and str(error).startswith(str(said).splitlines()[0])
    assert "float32" in str(error) and "x.cpu()" in str(error)
    assert errors_storage.from_xla(said, "cuda") is said


@pytest.mark.parametrize("cut", [np.s_[:, -1:], np.s_[:, ::2], np.s_[1:, 1]])
def test_numbers_that_are_known_and_lie_apart(cut):
    """An index made of a part of what is at hand, whose numbers numpy's view does not have side by side."""
    both(lambda t: t.arange(12).reshape(4, 3)[(t.tensor([[1, 2, 3], [3, 1, 0]]) + 0)[cut].clone().reshape(-1)])
