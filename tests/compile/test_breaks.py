"""torch._dynamo.explain: graphs, and the lines that break them."""

import inspect

import jtorch


def branching(x):
    y = x.sum() * 2
    if y > 0:  # a break
        return x * 2
    return x - 1


def calls(x):
    return branching(x).sum().item()  # another


def test_breaks_are_at_the_lines_of_the_program():
    found = jtorch._dynamo.explain(calls)(jtorch.ones(3))
    assert (found.graph_count, found.graph_break_count) == (2, 1) and found.op_count == 5
    assert found.ops_per_graph == [["sum", "mul", "gt"], ["mul", "sum"]]
    first, second = found.break_reasons
    start = inspect.getsourcelines(branching)[1]
    assert [f.name for f in first.user_stack][-2:] == ["calls", "branching"] and first.user_stack[
        -1
    ].lineno == start + 2
    assert second.user_stack[-1].name == "calls" and second.graph_break
    text = str(found)
    assert "Graph Count: 2" in text and "Reason: value needed" in text and "test_breaks.py, line" in text


def test_modules_and_compiled_functions_are_one_graph():
    net = jtorch.nn.Sequential(jtorch.nn.Linear(2, 2), jtorch.nn.ReLU())
    for f in (net, jtorch.compile(net), jtorch.compile(lambda x: net(x))):
        found = jtorch._dynamo.explain(f)(jtorch.ones(1, 2))
        assert (found.graph_count, found.graph_break_count, found.break_reasons) == (1, 0, [])
        assert found.ops_per_graph == [["linear", "relu"]]
    assert jtorch._dynamo.explain(net, jtorch.ones(1, 2)).graph_count == 1
    assert jtorch.core.record.tls.me.scope is None
