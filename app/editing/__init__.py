"""The edit itself: file in, checked diff out, safe apply. No UI, no tensors."""
