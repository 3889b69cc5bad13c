"""Which counts and costs of the paper does this build reproduce, and where does it differ, and why?

The paper is *Call-Level Revision Contracts for LLM-Authored Workflows*. Its scripts are not published: each case is
rebuilt after what it tells (``cases.py``), run through the engine in memory, and counted by a provider that the engine
does not control. Nothing is bent to fit; every line that differs has its reason, and one without is a miss. Times are
this machine's and stand beside the paper's for their order of magnitude alone.

The table of mutants and that of twenty scripts need the corpus of the source tree (``--corpus``). ``--price``,
``--call-seconds``, ``--rewrites`` and ``--rewrite-seconds`` are the user's own figures for the model of net benefit.
"""
