"""The gates of both walls: `boundary_gates` before anything is scored, `boundary_filtering` over every candidate.

- `gates`: the one list of gates, in order
- `gate_predicates`: access and visibility, over the columns of a scope; `time_gates`: time, as a predicate
- `clocks`: the time bounds of requests
- `second_wall`: every gate again, from contract and stored row alone
"""
