"""Which inputs of a program give their memory to its results."""


def donations(nodes, out, used, dead):
    """Positions of dead inputs whose memory a result of the same shape and dtype can take, the results in the order
    in which they take it, and {input: the result that takes its memory}.

    jax gives the first donated input of a kind to the first result of that kind. A result that took the memory of another
    result's old value (a gradient that of a parameter) would cost a copy of that value, since it is still read.
    """
    kind_of, old_of, made = {}, {}, {}
    outs = set(out)
    for node in nodes:
        results = {}  # of each kind
        for k, spec in enumerate(node.plan.specs):
            if node.first + k in outs:
                kind = (tuple(spec.shape), spec.dtype)
                results.setdefault(kind, []).append(node.first + k)
                made.setdefault(kind, []).append(node.first + k)
        operands = {}
        for i, spec in zip(node.ids, node.plan.operands):
            if i < 0 and dead[~i]:
                kind = kind_of.setdefault(~i, (tuple(spec.shape), spec.dtype))
                operands.setdefault(kind, {})[~i] = None
        # What replaces an input is made by the last op that reads it, at the same place among the results.
        for kind, inputs in operands.items():
            old_of.update(zip(inputs, results.get(kind, ())))
    position = {i: k for k, i in enumerate(used)}
    donate, takers = [], {}
    for kind, results in made.items():
        inputs = sorted((i for i, of in kind_of.items() if of == kind), key=position.__getitem__)
        new = {i: old_of[i] for i in inputs if i in old_of}
        replacing = set(new.values())
        rest = [r for r in results if r not in replacing]
        for i in inputs:
            if i not in new and rest:
                new[i] = rest.pop(0)
        for i in inputs:
            if i in new:
                donate.append(position[i])
                takers[new[i]] = position[i]
    last = len(used)
    taken = {used[at]: r for r, at in takers.items()}
    return tuple(sorted(donate)), tuple(sorted(out, key=lambda r: takers.get(r, last))), taken
