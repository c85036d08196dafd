"""What everything else stands on: excerpts of text, strict JSON, memos, problem codes."""
