"""The real service against the pure ledger: one state machine drives both, in any order."""
