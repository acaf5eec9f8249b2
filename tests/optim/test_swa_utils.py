"""Averages of weights, and the schedule that goes with them, against torch."""

import pytest

from tests.oracle import both


def test_averaged_model_and_swa_schedule():
    def run(torch):
        U = torch.optim.swa_utils
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
        averages = [
            U.AveragedModel(model),
            U.AveragedModel(model, multi_avg_fn=U.get_ema_multi_avg_fn(0.9), use_buffers=True),
            U.AveragedModel(model, avg_fn=U.get_ema_avg_fn(0.9)),
        ]
        o = torch.optim.SGD(model.parameters(), lr=0.01)
        schedule = U.SWALR(o, 0.005, anneal_epochs=3)
        rates = []
        x = torch.randn(8, 2)
        for _ in range(5):
            o.zero_grad()
            model(x).square().sum().backward()
            o.step()
            schedule.step()
            rates.append(schedule.get_last_lr())
            for average in averages:
                average.update_parameters(model)
        U.update_bn([x[:4], x[4:]], averages[0])
        return rates, [dict(a.state_dict()) for a in averages]

    both(run, least=(1e-5, 1e-6))


@pytest.mark.parametrize("counted", [False, True])
def test_no_equal_average_of_integers(counted):
    def run(torch):
        average = torch.optim.swa_utils.get_swa_multi_avg_fn()
        average([torch.tensor(3)], [torch.tensor(5)], torch.tensor(1) if counted else 1)

    assert both(run).error is not None


@pytest.mark.parametrize("kind", ["float64", "bfloat16"])
def test_averages_are_taken_in_the_dtype_of_the_parameters(kind):
    """As exactly, and as roughly; one without dimensions too."""

    def run(torch):
        model = torch.nn.Module()
        model.w, model.scale = (torch.nn.Parameter(torch.ones(s, dtype=getattr(torch, kind))) for s in ((2,), ()))
        model.count = torch.nn.Buffer(torch.tensor([3, 4]))
        averages = [torch.optim.swa_utils.AveragedModel(model, use_buffers=b) for b in (False, True)]
        for i in range(4):
            for p in model.parameters():
                p.data.fill_(i * i + 1)
            model.count += i
            for average in averages:
                average.update_parameters(model)
        return [dict(a.state_dict()) for a in averages]

    both(run, least=(0, 0))
