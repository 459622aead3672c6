"""Traffic through networks: topologies, costs of links, routing, and the Internet's autonomous systems."""
