"""Pages of people, workspaces and rights."""
