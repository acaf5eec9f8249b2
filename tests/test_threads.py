"""What is thread-local, and training in several threads at once."""

import threading

import numpy as np

import jtorch


def in_thread(fn):
    box, errors = [], []

    def body():
        try:
            box.append(fn())
        except BaseException as e:
            errors.append(e)

    t = threading.Thread(target=body)
    t.start()
    t.join(120)
    assert not errors, errors
    return box[0]


def test_grad_mode_is_thread_local():
    with jtorch.no_grad():
        assert in_thread(jtorch.is_grad_enabled) is True
    assert in_thread(lambda: jtorch.set_grad_enabled(False) and None) is None
    assert jtorch.is_grad_enabled()


def test_inference_mode_is_thread_local():
    with jtorch.inference_mode():
        assert in_thread(jtorch.is_inference_mode_enabled) is False


def _train(seed):
    g = jtorch.Generator().manual_seed(seed)
    w = jtorch.randn(4, 3, generator=g).requires_grad_()
    x = jtorch.randn(8, 4, generator=g)
    opt = jtorch.optim.SGD([w], lr=0.1, momentum=0.9)
    for _ in range(8):
        opt.zero_grad()
        (x @ w).pow(2).mean().backward()
        opt.step()
    return np.array(w.detach())


def test_three_threads_train_at_once():
    alone = [_train(s) for s in range(3)]
    together = {}
    threads = [threading.Thread(target=lambda s=s: together.__setitem__(s, _train(s))) for s in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(120)
    for s in range(3):
        np.testing.assert_allclose(together[s], alone[s], rtol=1e-5, atol=1e-7)


def test_a_tensor_written_in_one_thread_is_read_in_another():
    x = jtorch.zeros(3)
    in_thread(lambda: x.add_(2))
    assert x.tolist() == [2.0] * 3
    x.mul_(3)
    assert in_thread(x.tolist) == [6.0] * 3


def test_backward_in_another_thread():
    x = jtorch.ones(3, requires_grad=True)
    y = (x * 3).sum()
    in_thread(y.backward)
    assert x.grad.tolist() == [3.0] * 3
