"""The service in the shape that each RL framework wants its rewards in."""
