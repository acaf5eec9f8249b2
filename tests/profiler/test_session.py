"""Profiles: schedules, ranges, tables and the traces that are written."""

import json

import pytest

import jtorch
from jtorch.profiler import ProfilerAction, profile, record_function, schedule, tensorboard_trace_handler
from tests.oracle import torch


@pytest.mark.parametrize(
    "options",
    [
        dict(wait=1, warmup=1, active=2, repeat=2),
        dict(wait=0, warmup=1, active=1),
        dict(wait=2, warmup=1, active=1, skip_first=3),
    ],
)
def test_schedule(options):
    mine, its = schedule(**options), torch.profiler.schedule(**options)
    assert [mine(i).name for i in range(20)] == [its(i).name for i in range(20)]


def test_ranges_and_table(tmp_path):
    x = jtorch.ones(64, 64)
    with profile() as prof:
        with record_function("outer"):
            with record_function("inner"):
                y = x @ x
            (y + 1).sum().item()
    found = {e.key: e for e in prof.key_averages()}
    assert found["outer"].count == 1 and found["outer"].cpu_time_total >= found["inner"].cpu_time_total > 0
    assert found["outer"].self_cpu_time_total <= found["outer"].cpu_time_total - found["inner"].cpu_time_total + 1e-6
    assert any(not e.is_user_annotation for e in prof.events()), "no kernel was seen"
    text = prof.key_averages().table(sort_by="cpu_time_total", row_limit=2)
    assert "outer" in text and "Self CPU time total:" in text and len(text.splitlines()) == 7
    path = tmp_path / "trace.json"
    prof.export_chrome_trace(str(path))
    assert json.loads(path.read_text())["traceEvents"]
    assert [p.name for p in tmp_path.iterdir()] == ["trace.json"]


def test_steps(tmp_path):
    seen = []

    def ready(prof):
        seen.append(prof.step_num)
        tensorboard_trace_handler(str(tmp_path))(prof)

    with profile(schedule=schedule(wait=0, warmup=1, active=1, repeat=2), on_trace_ready=ready) as prof:
        for _ in range(6):
            jtorch.ones(2).sum().item()
            prof.step()
    assert seen == [2, 4] and prof.current_action is ProfilerAction.NONE
    assert [e.key for e in prof.events() if e.is_user_annotation] == ["ProfilerStep#3"]
    assert list(tmp_path.glob("*.pt.trace.json")) and list(tmp_path.rglob("*.xplane.pb"))


def test_a_step_after_the_end_records_nothing():
    with profile() as prof:
        jtorch.ones(2).sum().item()
    before = len(prof.events())
    prof.step()
    assert len(prof.events()) == before
    with profile() as later:
        jtorch.ones(2).sum().item()
    assert later.events()


def test_arguments_are_looked_at(tmp_path):
    with pytest.raises(AssertionError, match="No valid profiler activities found"):
        profile(activities=[])
    with pytest.raises(AssertionError, match="No valid profiler activities found"):
        profile(activities=[5])
    with pytest.raises(TypeError, match="not callable"):
        profile(schedule=5)
    with pytest.raises(TypeError, match="must be a str"):
        record_function(5)
    for use, words in (
        (profile.stop, "before stopping trace"),
        (profile.events, "before accessing events"),
        (profile.key_averages, "before getting key averages"),
        (lambda prof: prof.export_chrome_trace(str(tmp_path / "trace")), "before exporting chrome trace"),
    ):
        with pytest.raises(AssertionError, match=f"Profiler must be initialized {words}"):
            use(profile())
    with pytest.raises(AssertionError, match="Step must be non-negative. Got -1"):
        schedule(wait=1, warmup=1, active=1)(-1)
    with pytest.raises(AssertionError, match=r"Got wait=-1 \(need >= 0\)"):
        schedule(wait=-1, warmup=1, active=1)
    with pytest.warns(UserWarning, match="won't be using warmup"):
        schedule(wait=1, warmup=0, active=1)
    with profile() as prof:
        pass
    with pytest.raises(AssertionError, match="requires with_stack=True"):
        prof.export_stacks(str(tmp_path / "stacks"))


def test_one_at_a_time():
    with profile():
        with pytest.raises(RuntimeError, match="another profile is being taken"):
            profile().start()
