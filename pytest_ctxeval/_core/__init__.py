"""Pure values and functions: no pytest, network, clock, environment or shared randomness."""
