"""Calibration of cost models: fits to measured steps, in numpy, and the only code that may import torch.

``rows`` are measured steps, ``fit`` brings them to coefficients, ``errors`` says how far off those are.
"""
