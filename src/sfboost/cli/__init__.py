"""The `sfboost` command."""
