"""Calibration of cost models against real kernels: the only package that may import torch. It holds nothing yet."""
