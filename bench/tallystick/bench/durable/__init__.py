"""What does it take to make a call durable, against the limit that the disk sets?

The limit: two bare LMDB commits of the bytes that a call writes, and two times a page written and synced. Against them
the journal alone (attempt and record, each durable before the next), and the whole path of a call: script, guest,
broker, journal, provider and back, one call after the other and side by side. The provider answers at once.

All of it takes turns in rounds on one disk, after a round that is not counted. Shown are medians of the rounds with
their middle half; ratios are taken within each round, so that what slows the machine down cancels out. Flushes of a
call are the store's commits times what strace counts for a commit, in processes of their own.
"""
