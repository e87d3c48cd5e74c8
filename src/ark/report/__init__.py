"""What a person reads: figures, tables and the HTML report of an experiment.

May import ``ark.sim`` and below, and is the only package to import polars, Matplotlib and Jinja2.
"""
