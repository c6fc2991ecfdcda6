"""What a person touches: command line, settings, the edit itself. No tensors here."""
