"""The same world on simulated planes, on real ones, with operators as pods, and on kind."""
