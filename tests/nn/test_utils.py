"""nn.utils: clipping, norms, parametrizations, pruning, fusing."""

import importlib

import pytest

from tests.oracle import both


def net(torch):
    torch.manual_seed(0)
    m = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 2))
    m(torch.ones(2, 3)).square().sum().backward()
    return m


@pytest.mark.parametrize("norm_type", [1, 2, 2.5, float("inf")])
@pytest.mark.parametrize("max_norm", [0.1, 1000.0])
def test_clip_grad_norm(max_norm, norm_type):
    def run(torch):
        m = net(torch)
        total = torch.nn.utils.clip_grad_norm_(m.parameters(), max_norm, norm_type)
        return total, [p.grad for p in m.parameters()]

    both(run)


def test_clip_grad_value_and_vectors():
    def run(torch):
        m, u = net(torch), torch.nn.utils
        u.clip_grad_value_(m.parameters(), 0.1)
        v = u.parameters_to_vector(m.parameters())
        u.vector_to_parameters(v * 2, m.parameters())
        return [p.grad for p in m.parameters()], [p.detach() for p in m.parameters()], v.detach()

    both(run)


def test_clip_errors():
    def run(torch):
        p = torch.nn.Parameter(torch.ones(1))
        p.grad = torch.full((1,), float("inf"))
        torch.nn.utils.clip_grad_norm_([p], 1.0, error_if_nonfinite=True)

    assert both(run).error is not None


@pytest.mark.parametrize("style", ["hook", "parametrization"])
@pytest.mark.parametrize("which", ["weight_norm", "spectral_norm"])
def test_norms(which, style):
    def run(torch):
        u = torch.nn.utils
        torch.manual_seed(0)
        m = torch.nn.Linear(3, 4)
        apply = getattr(u if style == "hook" else u.parametrizations, which)
        m = apply(m)
        out = m(torch.ones(2, 3))
        out.square().sum().backward()
        result = [list(m.state_dict()), out.detach(), [p.grad for p in m.parameters()]]
        if style == "hook":
            getattr(u, "remove_" + which)(m)
        else:
            u.parametrize.remove_parametrizations(m, "weight")
        return [*result, list(m.state_dict()), m.weight.detach()]

    both(run, layout=False, least=(1e-5, 1e-6))


def test_parametrize():
    def run(torch):
        P = torch.nn.utils.parametrize

        class Double(torch.nn.Module):
            def forward(self, x):
                return 2 * x

            def right_inverse(self, y):
                return y / 2

        torch.manual_seed(0)
        m = torch.nn.Linear(2, 2)
        P.register_parametrization(m, "weight", Double())
        P.register_parametrization(m, "weight", Double())
        out = [P.is_parametrized(m), type(m).__name__, list(m.state_dict()), m.weight.detach()]
        m.weight = torch.ones(2, 2)
        with P.cached():
            out.append(m.weight is m.weight)
        out += [m.parametrizations.weight.original.detach(), repr(m)]
        P.remove_parametrizations(m, "weight")
        return [*out, m.weight.detach(), type(m).__name__]

    both(run)


@pytest.mark.parametrize("map_name", ["matrix_exp", "cayley", "householder"])
def test_orthogonal(map_name):
    def run(torch):
        torch.manual_seed(0)
        m = torch.nn.utils.parametrizations.orthogonal(torch.nn.Linear(3, 3), orthogonal_map=map_name)
        w = m.weight
        (w * torch.arange(9.0).view(3, 3)).sum().backward()
        return (w @ w.T).detach(), m.parametrizations.weight.original.grad

    both(run, layout=False, least=(1e-5, 1e-5))


def test_prune():
    def run(torch):
        u = importlib.import_module(torch.__name__ + ".nn.utils.prune")
        m = net(torch)
        u.l1_unstructured(m[0], "weight", 3)
        u.ln_structured(m[0], "weight", 0.25, 2, 0)
        u.random_unstructured(m[1], "weight", 0.5)
        u.custom_from_mask(m[1], "bias", torch.tensor([1.0, 0.0]))
        out = [list(m.state_dict()), dict(m.named_buffers()), u.is_pruned(m), m(torch.ones(1, 3)).detach()]
        u.remove(m[0], "weight")
        other = net(torch)
        u.global_unstructured([(other[0], "weight"), (other[1], "weight")], u.L1Unstructured, amount=7)
        scored, scores = net(torch), torch.arange(float(other[0].weight.numel())).view_as(other[0].weight)
        u.L1Unstructured.apply(scored[0], "weight", 2, scores)
        u.LnStructured.apply(scored[0], "weight", 1, 2, 1, scores)
        return [
            *out,
            list(m.state_dict()),
            m[0].weight.detach(),
            dict(other.named_buffers()),
            dict(scored.named_buffers()),
        ]

    both(run, layout=False)


def test_fuse():
    def run(torch):
        u = torch.nn.utils
        torch.manual_seed(0)
        conv, bn, lin, bn1 = (
            torch.nn.Conv2d(2, 3, 3),
            torch.nn.BatchNorm2d(3),
            torch.nn.Linear(2, 3),
            torch.nn.BatchNorm1d(3),
        )
        bn(torch.randn(4, 3, 2, 2))
        bn1(torch.randn(4, 3))
        for m in (conv, bn, lin, bn1):
            m.eval()
        a, b = u.fuse_conv_bn_eval(conv, bn), u.fuse_linear_bn_eval(lin, bn1)
        return [p.detach() for m in (a, b) for p in m.parameters()]

    both(run, least=(1e-5, 1e-6))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_fused_weights_of_a_layer_without_bias(dtype):
    def run(torch):
        fusion = importlib.import_module(f"{torch.__name__}.nn.utils.fusion")
        kind, three = getattr(torch, dtype), torch.arange(1.0, 4.0)
        conv = fusion.fuse_conv_bn_weights(torch.ones(3, 2, 2, 2, dtype=kind), None, three, three, 1e-5, None, None)
        linear = fusion.fuse_linear_bn_weights(torch.ones(3, 2, dtype=kind), None, three, three, 1e-5, three, three)
        return [*conv, *linear]

    both(run)


def test_fusing_what_does_not_fit():
    def run(torch):
        torch.nn.utils.fuse_linear_bn_eval(torch.nn.Linear(2, 4).eval(), torch.nn.BatchNorm1d(3).eval())

    assert both(run).error is not None


def test_skip_init():
    both(lambda torch: torch.nn.utils.skip_init(torch.nn.Linear, 2, 3).weight.shape)


RIGHT_INVERSES = {
    "dtype": lambda x: x.double(),
    "number": lambda x: 3,
    "one tensor": lambda x: x,
    "too many": lambda x: (x, x, x),
    "numbers": lambda x: (x, 3),
    "dtypes": lambda x: (x, x.double()),
}


@pytest.mark.parametrize("name", RIGHT_INVERSES)
@pytest.mark.parametrize("tensors", [1, 2])
def test_right_inverse_is_checked(tensors, name):
    """What `right_inverse` gives for a new value is held to what it gave first."""

    def run(torch):
        class Sum(torch.nn.Module):
            later = False

            def forward(self, *parts):
                return sum(parts)

            def right_inverse(self, x):
                if self.later:
                    return RIGHT_INVERSES[name](x)
                return x if tensors == 1 else (x, x)

        layer, parts = torch.nn.Linear(2, 2), Sum()
        parametrize = importlib.import_module(torch.__name__ + ".nn.utils.parametrize")
        parametrize.register_parametrization(layer, "weight", parts, unsafe=True)
        parts.later = True
        layer.weight = torch.ones(2, 2)
        return layer.weight

    both(run)


def test_spectral_norm_in_metadata():
    def run(torch):
        layer = torch.nn.utils.spectral_norm(torch.nn.Linear(2, 2))
        noted = layer.state_dict()._metadata
        torch.nn.utils.remove_spectral_norm(layer)
        return dict(noted), dict(layer.state_dict()._metadata)

    both(run)


@pytest.mark.parametrize("lacks", ["", "v", "u", "orig", "weight", "version"])
def test_states_of_spectral_norm_from_before_versions(lacks):
    """They hold the divided weight and no v."""

    def run(torch):
        torch.manual_seed(0)
        layer = torch.nn.utils.spectral_norm(torch.nn.Linear(3, 4))
        layer(torch.ones(2, 3))
        state = layer.state_dict()
        if lacks != "version":
            state["weight"] = layer.weight.detach().clone()
        del state._metadata[""]["spectral_norm"], state["weight_v"]
        state.pop("weight" if lacks == "weight" else f"weight_{lacks}", None)
        other = torch.nn.utils.spectral_norm(torch.nn.Linear(3, 4))
        loose = other.load_state_dict(dict(state), strict=False)
        other.load_state_dict(state)
        return loose, other.weight_v, other(torch.ones(2, 3))

    both(run)


def test_parametrizations_of_what_the_other_module_has_not():
    def run(torch):
        P = torch.nn.utils.parametrize

        class Double(torch.nn.Module):
            def forward(self, x):
                return 2 * x

        one, other = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
        one.extra = torch.nn.Parameter(torch.ones(3))
        P.register_parametrization(one, "extra", Double())
        P.transfer_parametrizations_and_params(one, other)
        return (
            other.extra.detach(),
            list(other.state_dict()),
            other.parametrizations.extra.original is one.parametrizations.extra.original,
        )

    both(run)


@pytest.mark.parametrize(
    "inverse", [lambda x: x.double(), lambda x: x[:-1], lambda x: x[:-1].double(), lambda x: (x, x)]
)
def test_right_inverse_of_a_second_parametrization(inverse):
    def run(torch):
        P = torch.nn.utils.parametrize

        class Same(torch.nn.Module):
            def forward(self, x):
                return x

        class Back(Same):
            def right_inverse(self, x):
                return inverse(x)

        layer = torch.nn.Linear(2, 2)
        P.register_parametrization(layer, "weight", Same())
        P.register_parametrization(layer, "weight", Back())

    assert both(run).error is not None
