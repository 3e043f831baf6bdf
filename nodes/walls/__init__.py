"""The gates of both walls: `boundary_gates` before anything is scored, `boundary_filtering` over every candidate.

- `gates`: every gate as one object, and the one list of them, in order
- `gate_order`: the gates of a run in order, including those of plugins
- `gate_predicates`: access and visibility gates over `segment_columns`; `time_gates`: time, as a predicate
- `clocks`: the time bounds of requests; `moments`: what rows show at an instant, kept between two of their times
- `second_wall`: every gate again, from contract and stored row alone
"""
