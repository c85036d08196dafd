"""What the OpenAPI document says of each route: codes, sentences, examples."""
