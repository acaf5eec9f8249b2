"""torch.fx.experimental: fusing layers, and the names of tracers that are not here."""
