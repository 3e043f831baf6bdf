"""Doors for other programs, thin as the command line: HTTP and MCP (extra `serve`), over one `retriever_pool`.

- `retriever_pool`: a retriever per principal, shared by threads, and every question that an interface may put
- `models`: what goes in and comes out, as pydantic types derived from the declared tables
- `appending`: rows that a caller adds; `expanding`: more of a citation
- `problems`: errors in the one shape that every interface answers with
- HTTP: `http_app` with its `http_routes`; `http_guard`: credentials, limits, rates, trace ids; `metrics`
- `clients`: the configuration of coding agents that start the MCP server
- MCP: `mcp_server` with its `mcp_tools` and the page of an x-ray; `mcp_http`: its messages over HTTP
- `renderings`: a snapshot in every format that the servers and the command line give

Nothing here is imported before the commands `serve` and `mcp` run.
"""
