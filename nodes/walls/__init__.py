"""The gates of both walls: `boundary_gates` before anything is scored, `boundary_filtering` over every candidate.

- `gate`: the definition of a gate; `gates`: every gate as one object, and the one list of them, in order
- `gate_order`: the gates of a run in order, including those of plugins
- `first_wall`: access and visibility gates over the distinct words of a segment; `time_gates`: time, as a predicate
- `second_wall`: every gate again, from contract and stored row alone
"""
