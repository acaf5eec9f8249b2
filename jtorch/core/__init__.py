"""Dtypes, devices, layouts, storages, the recorder and random numbers: what the ops and the tape stand on."""
