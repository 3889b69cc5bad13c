"""What happens with many runs at once, and with a store that holds many records?

Runs in flight, from 1 to 1,000: each has a call that is held until all of them have one, and then all end. The guests
are in this process there, for a thousand others would measure the machine. What a live run takes of the daemon's
memory is measured with locked guests, whose own memory is not in it.

A store is filled with copies of a run of 200 sites, ``--records`` of them in all (10,000,000 take some minutes and
some gigabytes). A daemon is started on it and on an empty one in turn; and a run's records are read, folded and held
against its script, in both.

Fairness: equal runs on a narrow capability, all of them with their calls waiting, by how even they were served when
half of all calls were; and a small run beside a wide one, against itself alone.
"""
