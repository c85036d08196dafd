"""Attacks by connections and on the event loop that serves them."""
