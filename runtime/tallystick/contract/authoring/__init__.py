"""Scripts that a model writes or repairs: what it is asked, what is read in its answer, what is accepted of it.

All of it is pure (contract.md, section 9). What a model answers is untrusted text, and so is whatever a provider said
that stands in its prompt: authority stays with the checker, the gate and the grants, whatever the text says.
"""
