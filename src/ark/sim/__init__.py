"""What a scheme gains: the engines, the schemes, serving (TTFT), experiments and sweeps.

May import everything below it; needs the extra ``ark[sim]`` (Numba).
"""
