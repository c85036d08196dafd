"""The coordinator as a pure state machine: its executable specification."""
