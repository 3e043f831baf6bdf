"""Building blocks of the steps of the context policy.

- `words`: closed lists of events, sources, parts, phases, reasons
- `as_of`: the facts and events as of an event, for many turns at once
- `asserting`: what events assert, slot by slot, for the state of the agent
- `conflicts`: rules of different scopes that may disagree
- `duties`: prohibitions, approvals and checks in rule texts, by their `duty_words`; `tagged`: tagged blocks, which
  programs put into a message
- `scopes`: which rules, files and tools a task touches; `versions_read`: changes of files that reads prove
- `joining`: concatenation of texts
- `frame`: every byte of a model input except the texts themselves
- `session_sources`: sources of the session log; `user_sources`: the user's own words
- `judging` and `worth`: the state and rules that all gates share, and the fifth gate
- `fitting`: which sources fit, all turns at once
- `found_lines`: the lines of searches that an event of the input shows
- `texts`: both messages of many turns
"""
