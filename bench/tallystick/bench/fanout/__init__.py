"""What does one failed branch of a fanout cost at a provider, against running all of it again?

For each width N a script asks for N pictures side by side, and one call fails. The repair of its prompt goes through
the gate and is resumed: that is the contract, N + 1 calls. A run of the repaired script from nothing is the control:
with the failed launch, which both have in common, 2 N calls. Calls, pictures, dollars and seconds are read off the
journal; the seconds leave out what writing the repair takes.

At the ``local`` provider, whose bills are simulated, the call fails on demand. At any other it is a prompt that the
provider refuses (``--bad-prompt``). It asks before it spends, begins with a single call to see what one costs, and
never starts what may go beyond ``--max-spend``.
"""
