"""What is told to whoever runs the service: Prometheus metrics, OpenTelemetry spans."""
