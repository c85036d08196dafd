"""What tables ask of rows beyond their columns' types, and the writes that replace rows."""
