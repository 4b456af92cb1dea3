"""The graph's nodes: file = function = the node's name in the graph."""
