"""A function whose derivatives are wrong, and each in its own way, so that one sees which was used."""

CUBE = """
class Cube(torch.autograd.Function):
    generate_vmap_rule = True
    @staticmethod
    def forward(x):
        return x ** 3
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)
    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        return g * 30 * x ** 2
    @staticmethod
    def jvp(ctx, t):
        x, = ctx.saved_tensors
        return 300 * t * x ** 2
"""
