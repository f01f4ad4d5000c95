"""What the tests against NumPy share: graphs that run many checks in one process, comparison in ulps, test values."""
