"""Target models behind one protocol."""
