"""The interface of DeerFlow that a sandbox provider sees: names and signatures, for tests where DeerFlow itself is not there."""
