"""Calibration of cost models: timing real kernels, fitting coefficients to what was measured, and trying them out.

The fits are numpy alone; what times or runs something is the only code of batchsim that imports torch. Read in this
order:

``rows``, ``fit``, ``table_fit``        measured steps and kernels, and the coefficients that they come to
``published``, ``bundled``              published timings, and the profiles made of them
``paged``, ``attention``, ``llama``     a paged KV cache, the ways to attend to it, a model over it
``grid``, ``workbench``, ``timing``     what is timed, on which buffers, and how
``measuring``, ``samples``, ``fitting`` all points timed, kept as they come, and fitted
``run``, ``report``                     the calibration of one machine from end to end
``engine``, ``live``, ``validation``    a policy's steps carried out for real, and the profile held against them
"""
