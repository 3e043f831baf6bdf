"""What the steps of the context policy are made of.

- `words`: closed lists of events, sources, parts, phases, reasons
- `as_of`: the facts and events as of an event, for many turns at once
- `asserting`: what events assert, slot by slot, for the state of the agent
- `conflicts`: rules of different scopes that may disagree
- `duties`: prohibitions, approvals and checks in rule texts, by their `duty_words`; `tagged`: blocks in tags, which programs put into a message
- `scopes`: which rules, files and tools a task touches
- `joining`: texts side by side
- `frame`: every byte of a model input but the texts themselves
- `session_sources`: sources of the session log; `user_sources`: what the user says
- `judging` and `worth`: what gates decide with, and the fifth gate
- `fitting`: which sources fit, all turns at once
- `found_lines`: the lines of searches that an event of the input shows
- `texts`: both messages of many turns
"""
