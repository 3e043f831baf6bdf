"""Servers for other programs, as thin as the command line: HTTP and MCP (extra `serve`), over one `retriever_pool`.

- `retriever_pool`: a retriever per principal, shared by threads, and every operation of the interfaces
- `models`: requests and answers, as pydantic types derived from the declared tables
- `appending`: adds rows of a caller
- `problems`: errors in the common form of all interfaces
- HTTP: `http_app`; `http_guard`: credentials, limits, trace ids
- `clients`: the configuration of coding agents that start the MCP server
- MCP: `mcp_server`, and `mcp_tools`
- `renderings`: a snapshot in every format of the servers and the command line

Nothing here is imported before the command `serve` runs.
"""
