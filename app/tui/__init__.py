"""The terminal UI: what a person sees and presses; what an edit is lives in `app.editing`."""
