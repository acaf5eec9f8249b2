"""Which tracers run: asked by is_fx_tracing."""

running: list = []
