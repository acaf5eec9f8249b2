"""Tools for modules and parameters: clipping, norms, packing, functional calls."""
