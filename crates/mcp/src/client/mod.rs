//! MCP servers of other programs, and their tools among ours.
