"""What a log needs so that others can live on it. Each use case here may be cut off at any step,
and run by two instances at once, and leaves a log that readers can read: it writes files under
names that nobody else has, and points to them last."""
