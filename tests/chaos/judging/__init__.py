"""The judge: a history of what clients were told, against what is in storage."""
