"""Building blocks of the steps of the context policy.

- `words`: closed lists of events, sources, parts, phases, reasons
- `folding`: the state of a session, folded from its events
- `reading`: turns with their sources, which the steps pass on
- `frame`: every byte of a model input except the texts themselves
- `fitting`: which sources fit into an input, and both of its messages
"""
