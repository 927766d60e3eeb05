"""One card per verb: REST action, policy, allowed states, RPC calls, notifications."""
